// Loads one package in one way into one fresh Pyodide, runs one case, and notes how that went.
//
// The job comes as JSON on stdin; attempt.py says what is in it. What happens is noted in the journal, a file of one
// JSON object a line that nothing else writes to: "started", "loaded", and then "passed" or "failed". A journal that
// ends with neither means that the process died, and whoever started it knows of what.

import { createHash } from "node:crypto";
import { appendFileSync, openSync, readFileSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { detail, FLUSH, isPythonError, loadPackage, refusal, summary } from "./page/outcome.mjs";

const job = JSON.parse(readFileSync(0, "utf8"));
const output = openSync(job.output, "w");
let room = job.output_limit; // bytes the case may still print
let cut = false;
let begun = performance.now(); // of loading, then of running
let ended = false;
let flush = () => {};

// From here on every error ends as a note. Left to itself, Node prints the line of source an error came from, and
// Pyodide's is 1.3 MB long. After a fatal error the promise of runPythonAsync stays pending for ever: it arrives here.
process.on("uncaughtException", (error) => fail(error));
process.on("unhandledRejection", (error) => fail(error));
process.on("beforeExit", () => fail(refusal("it awaits something that can no longer happen")));

note("started", { pid: process.pid });
main().catch(fail);

async function main() {
  compareDigests();
  const pyodide = await startPyodide();
  await load(pyodide);
  for (const name of job.imports) pyodide.pyimport(name);
  note("loaded", { seconds: elapsed() });
  begun = performance.now();
  await runCase(pyodide);
  await new Promise(setImmediate); // a rejection that nobody awaited shows itself now
  end("passed", {});
}

// Pyodide in Node loads a file with another digest than its lock file names without a word.
function compareDigests() {
  const name = basename(job.file);
  const found = createHash("sha256").update(readFileSync(job.file)).digest("hex");
  if (found !== job.sha256) throw refusal(`${name} has SHA-256 ${found}, expected ${job.sha256}`);
  if (job.loader !== "lock") return;
  const entry = lockEntry();
  if (!entry) throw refusal(`${basename(job.lock)} has no entry with file_name ${name}`);
  if (entry.sha256 !== found) {
    throw refusal(`${basename(job.lock)} says SHA-256 ${entry.sha256} of ${name}, which has ${found}`);
  }
}

function lockEntry() {
  const { packages } = JSON.parse(readFileSync(job.lock, "utf8"));
  return Object.values(packages).find((entry) => entry.file_name === basename(job.file));
}

async function startPyodide() {
  const { loadPyodide } = await import(pathToFileURL(`${job.pyodide}/pyodide.mjs`));
  const options = { lockFileURL: job.lock, packageBaseUrl: `${dirname(job.file)}/` };
  const pyodide = await loadPyodide(job.loader === "lock" ? options : {});
  pyodide._api.on_fatal = (error) => fail(error, "Pyodide died of ");
  pyodide.setStdout({ write: print });
  pyodide.setStderr({ write: print });
  flush = () => pyodide.runPython(FLUSH);
  return pyodide;
}

async function load(pyodide) {
  if (job.loader === "wheel") return loadPackage(pyodide, job.file);
  if (job.loader === "lock") return loadPackage(pyodide, lockEntry().name);
  const extractDir = pyodide.runPython("import site; site.getsitepackages()[0]");
  return pyodide.unpackArchive(new Uint8Array(readFileSync(job.file)), "zip", { extractDir });
}

async function runCase(pyodide) {
  const source = readFileSync(job.program, "utf8");
  const filename = `/case/${basename(job.program)}`;
  pyodide.FS.mkdirTree("/case");
  pyodide.FS.writeFile(filename, source); // for inspect.getsource, which reads the file
  pyodide.mountNodeFS("/out", job.files); // what is written there outlives the process, however that ends
  pyodide.globals.set("__file__", filename);
  await pyodide.runPythonAsync(source, { filename });
  flush();
}

function print(bytes) {
  writeSync(output, bytes.subarray(0, room));
  if (bytes.length > room && !cut) {
    cut = true;
    writeSync(output, "\n[the rest is left out]\n");
  }
  room = Math.max(0, room - bytes.length);
  return bytes.length;
}

function fail(error, prefix = "") {
  if (ended) return;
  if (isPythonError(error)) flush();
  writeSync(output, detail(error));
  end("failed", { message: prefix + summary(error) });
}

function end(event, found) {
  ended = true;
  note(event, { seconds: elapsed(), ...found });
  process.exit(event === "passed" ? 0 : 1);
}

function note(event, found) {
  appendFileSync(job.journal, `${JSON.stringify({ event, ...found })}\n`);
}

function elapsed() {
  return (performance.now() - begun) / 1000;
}
