// Loads one package from its own origin into one fresh Pyodide, runs one case, and reports how that went.
//
// It is the same in a module worker and on the main thread of a page. Its own address names the attempt; browser.py
// says what is in the job. All that it has to say it sends to where it came from, in requests that end before the next
// line runs: a program that never ends cannot take it back. The events are those of the harness in Node: "started",
// "loaded", and then "passed" or "failed".

import { detail, FLUSH, isPythonError, loadPackage, refusal, summary } from "./outcome.mjs";

const PRINT_SECONDS = 0.05; // what is printed sooner after the last request waits for the next
const PRINT_BYTES = 64 * 1024; // unless it is as much as this

const attempt = new URL(`/attempts/${new URL(import.meta.url).searchParams.get("attempt")}/`, import.meta.url);
const job = await (await fetch(new URL("job.json", attempt))).json();
let begun = performance.now(); // of loading, then of running
let ended = false;
let pyodide;
let printed = []; // chunks, not yet sent
let printedBytes = 0;
let sent = 0; // when something printed was sent last
let room = job.output_limit; // bytes the case may still print

// After a fatal error the promise of runPythonAsync stays pending for ever: it arrives here.
self.addEventListener("error", (event) => fail(event.error ?? refusal(event.message)));
self.addEventListener("unhandledrejection", (event) => fail(event.reason));

note("started", {});
main().catch(fail);

async function main() {
  const name = await packageName();
  await startPyodide();
  await load(name);
  for (const each of job.imports) pyodide.pyimport(each);
  note("loaded", { seconds: elapsed() });
  begun = performance.now();
  await runCase();
  await new Promise((resolve) => setTimeout(resolve)); // a rejection that nobody awaited shows itself now
  if (!ended) end("passed", {});
}

// The browser refuses a wheel with another digest than the lock file says; that the lock file says the right one is
// left to us.
async function packageName() {
  const response = await fetch(job.lock).catch(() => undefined);
  if (!response?.ok) throw refusal(await fault(job.lock));
  const entry = Object.values((await response.json()).packages).find(({ file_name }) => file_name === job.file);
  if (!entry) throw refusal(`the lock file has no entry with file_name ${job.file}`);
  if (entry.sha256 !== job.sha256) {
    throw refusal(`the lock file says SHA-256 ${entry.sha256} of ${job.file}, expected ${job.sha256}`);
  }
  return entry.name;
}

async function load(name) {
  try {
    await loadPackage(pyodide, name);
  } catch (error) {
    throw refusal((await fault(new URL(job.file, job.lock).href, job.sha256)) || error.message);
  }
}

// A script is told no more than "Failed to fetch": why, has to be found out. Returns nothing for a file that is right.
async function fault(url, sha256) {
  const response = await fetch(url).catch(() => undefined);
  if (!response) {
    const answered = await fetch(url, { mode: "no-cors" }).catch(() => undefined);
    return answered ? `${url} comes without Access-Control-Allow-Origin` : `${url} cannot be reached`;
  }
  if (!response.ok) return `${url} is answered with status ${response.status}`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await response.arrayBuffer()));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return sha256 && found !== sha256 ? `${url} has SHA-256 ${found}, expected ${sha256}` : "";
}

async function startPyodide() {
  const { loadPyodide } = await import(job.pyodide);
  pyodide = await loadPyodide({ lockFileURL: job.lock, packageBaseUrl: new URL(".", job.lock).href });
  pyodide._api.on_fatal = (error) => fail(error, "Pyodide died of ");
  pyodide.setStdout({ write: print });
  pyodide.setStderr({ write: print });
  pyodide.FS.mkdirTree("/out");
}

async function runCase() {
  const filename = `/case/${job.program}`;
  pyodide.FS.mkdirTree("/case");
  pyodide.FS.writeFile(filename, job.source); // for inspect.getsource, which reads the file
  pyodide.globals.set("__file__", filename);
  await pyodide.runPythonAsync(job.source, { filename });
  pyodide.runPython(FLUSH);
}

function print(bytes) {
  const kept = bytes.slice(0, room);
  if (kept.length < bytes.length && room > 0) printed.push(kept, "\n[the rest is left out]\n");
  else if (kept.length) printed.push(kept);
  room -= kept.length;
  printedBytes += kept.length;
  if (printedBytes > PRINT_BYTES || performance.now() - sent > PRINT_SECONDS * 1000) sendPrinted();
  return bytes.length;
}

function sendPrinted() {
  if (printed.length) send("output.txt", new Blob(printed));
  printed = [];
  printedBytes = 0;
  sent = performance.now();
}

function fail(error, prefix = "") {
  if (ended) return;
  if (isPythonError(error)) pyodide.runPython(FLUSH);
  printed.push(detail(error));
  end("failed", { message: prefix + summary(error) });
}

function end(event, found) {
  ended = true;
  const seconds = elapsed();
  try {
    sendPrinted();
    if (pyodide) sendFiles("/out");
    note(event, { seconds, ...found });
  } catch (error) {
    note("failed", { seconds, message: found.message ?? `its files cannot be had: ${summary(error)}` });
  }
}

function sendFiles(folder) {
  for (const name of pyodide.FS.readdir(folder).filter((name) => name !== "." && name !== "..")) {
    const path = `${folder}/${name}`;
    const { mode } = pyodide.FS.stat(path);
    if (pyodide.FS.isDir(mode)) sendFiles(path);
    else if (pyodide.FS.isFile(mode)) {
      send(`files/${path.split("/").slice(2).map(encodeURIComponent).join("/")}`, pyodide.FS.readFile(path));
    }
  }
}

function note(event, found) {
  send("journal.jsonl", `${JSON.stringify({ event, ...found })}\n`);
}

function send(what, body) {
  const request = new XMLHttpRequest();
  request.open("POST", new URL(what, attempt), false);
  request.send(body);
}

function elapsed() {
  return (performance.now() - begun) / 1000;
}
