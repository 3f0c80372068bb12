// Loads the package of the CDN tree that this file lies in, Triton, into a Pyodide: in a page, a worker or Node.
//
// The side module is compiled while it comes and never touches Pyodide's file system. Nothing runs before its SHA-256 is
// what the index says. What triton-wasm.d.ts says of each function holds; this file says why.

const CACHE = "triton-wasm"; // of the Cache API
const TREE = new URL(import.meta.url.replace(/(files\/[0-9a-f]{16}\/)?[^/]*$/, ""));
const PYODIDE = (version) => `https://cdn.jsdelivr.net/pyodide/v${version}/full/`;

const loads = new WeakMap(); // the promise of each Pyodide: to ask twice is to wait for one load

export class TritonLoadError extends Error {
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = "TritonLoadError";
    this.code = code;
  }
}

export async function loadTriton({ pyodide, pyodideURL, version, base = TREE, onProgress = () => {}, signal } = {}) {
  if (pyodide && loads.has(pyodide)) return loads.get(pyodide);
  const options = { pyodide, pyodideURL, version, base: new URL(base, globalThis.location?.href), onProgress, signal };
  const loading = load(options);
  if (pyodide) {
    loads.set(pyodide, loading);
    loading.catch(() => loads.delete(pyodide));
  } else {
    loading.then((loaded) => loads.set(loaded.pyodide, loading), () => {});
  }
  return loading;
}

async function load({ pyodide, pyodideURL, version, base, onProgress, signal }) {
  const clock = stopwatch();
  const tell = (stage, loaded = 0, total = 0, cached = false) => onProgress({ stage, loaded, total, cached });
  const fetching = { base, signal, tell };

  tell("index");
  const { latest, index } = await readIndex(fetching, version);
  clock("index");

  // One build alone can be fetched while Pyodide starts; of several it is Pyodide that decides.
  const sure = pyodide ? pick(index, abiOf(pyodide)) : index.builds.length === 1 ? index.builds[0] : undefined;
  let parts = sure && fetchParts(fetching, sure, latest.delivery);
  parts?.catch(() => {}); // is awaited below, after Pyodide
  if (!pyodide) {
    tell("pyodide");
    pyodide = await startPyodide(pyodideURL ?? PYODIDE(index.builds[0].pyodide));
    clock("pyodide");
  }
  const build = pick(index, abiOf(pyodide));
  const { module, tree, stored } = await (parts ?? fetchParts(fetching, build, latest.delivery));
  signal?.throwIfAborted();
  clock("download");

  tell("install");
  await install(pyodide, build, module, tree);
  clock("install");
  tell("import");
  importAll(pyodide, build.imports);
  clock("import");
  tell("ready");
  return { pyodide, name: index.name, version: index.version, abi: build.abi, timings: clock.laps, stored };
}

// ---- what there is

async function readIndex(fetching, version) {
  const latest = await readJSON(fetching, "latest.json");
  const path = latest.versions?.[version ?? latest.version];
  if (!path) {
    const known = Object.keys(latest.versions ?? {}).join(", ");
    throw new TritonLoadError("version", `There is no version ${version} at ${fetching.base}; there are ${known}.`);
  }
  return { latest, index: await readJSON(fetching, path) };
}

// The only files that change. Without a network the copies of the last visit do: what they name is in a cache as well.
async function readJSON({ base, signal }, path) {
  const url = new URL(path, base).href;
  let response;
  try {
    response = await request(url, { signal });
  } catch (error) {
    response = ["offline", "unreachable"].includes(error.code) ? await remembered(url) : undefined;
    if (!response) throw error;
  }
  const text = await response.text();
  try {
    const found = JSON.parse(text);
    if (found.schema_version !== 1) throw new Error(`its schema_version is ${found.schema_version}`);
    await remember(url, text, "application/json");
    return found;
  } catch (error) {
    throw new TritonLoadError("content", `${url} is not the index it should be (${error.message}).`, error);
  }
}

function pick(index, abi) {
  const build = index.builds.find((build) => build.abi === abi);
  if (build) return build;
  const wanted = index.builds.map(({ abi, pyodide }) => `Pyodide ${pyodide} (ABI ${abi})`).join(" or ");
  throw new TritonLoadError("abi", `${index.name} ${index.version} needs ${wanted}, and this Pyodide has ABI ${abi}.`);
}

function abiOf(pyodide) {
  return pyodide._api.abiVersion ?? pyodide._api.lockfile_info?.abi_version; // the second before Pyodide 315
}

async function startPyodide(url) {
  const folder = new URL(`${url}`.replace(/\/?$/, "/"), globalThis.location?.href).href;
  try {
    const { loadPyodide } = await import(/* @vite-ignore */ `${folder}pyodide.mjs`);
    return await loadPyodide();
  } catch (error) {
    throw new TritonLoadError("pyodide", `Pyodide does not start from ${folder}: ${error.message}`, error);
  }
}

// ---- the two halves of the package

async function fetchParts(fetching, build, delivery) {
  const { base, tell } = fetching;
  const total = build.module.size + build.tree.size;
  const seen = { module: 0, tree: 0, cached: true };
  const count = (part) => (bytes, cached) => {
    seen[part] = bytes;
    seen.cached &&= cached;
    tell("download", seen.module + seen.tree, total, seen.cached);
  };
  const [module, tree] = await Promise.all([
    fetchPart(fetching, build.module, delivery, "application/wasm", count("module"), compile),
    fetchPart(fetching, build.tree, delivery, "application/zip", count("tree"), undefined),
  ]);
  return { module: module.made, tree: tree.bytes, stored: Promise.all([module.stored, tree.stored]).then(() => {}) };
}

// Gives the bytes of a file, and what `make` made of a response with them meanwhile. What is not what the index says is
// fetched once more, past every cache and as it lies there.
async function fetchPart({ base, signal }, file, delivery, type, count, make) {
  const url = new URL(file.path, base).href;
  for (const again of [false, true]) {
    const { response, cached } = await open(url, file, { base, signal, delivery, type, again });
    const body = response.clone().body; // a clone leaves the browser its right to cache compiled code
    const making = make?.(response);
    making?.catch(() => {});
    try {
      const bytes = await collect(body, url, file, (bytes) => count(bytes, cached));
      const made = making && (await making.catch((error) => makeOf(bytes, error)));
      const keep = delivery === "plain" && !cached;
      return { bytes, made, stored: keep ? remember(url, bytes, type) : Promise.resolve() };
    } catch (error) {
      signal?.throwIfAborted();
      if (again || !["integrity", "truncated"].includes(error.code)) throw error;
    }
  }
}

// A negotiated file comes from the network or from the browser's own cache, the only one that keeps compiled code with it.
// What a host sends as it lies there is fetched compressed and unpacked here; the Cache API keeps the result.
async function open(url, file, { base, signal, delivery, type, again }) {
  if (delivery === "negotiated") {
    return { response: await request(url, { signal, cache: again ? "reload" : "force-cache" }), cached: false };
  }
  const known = again ? undefined : await remembered(url);
  if (known) return { response: known, cached: true };
  const [unpack, twin] = again ? [] : unpacking(file.encoded);
  if (!unpack) return { response: await request(url, { signal }), cached: false };
  const packed = await request(new URL(twin.path, base).href, { signal });
  return { response: new Response(packed.body.pipeThrough(unpack), { headers: { "Content-Type": type } }), cached: false };
}

function unpacking(encoded) {
  for (const [name, format] of [["br", "brotli"], ["gz", "gzip"]]) {
    try {
      if (encoded[name]) return [new DecompressionStream(format), encoded[name]];
    } catch {} // an engine that does not know it
  }
  return [];
}

async function collect(body, url, file, count) {
  const bytes = new Uint8Array(file.size);
  let length = 0;
  try {
    for (const reader = body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if (length + value.length <= file.size) bytes.set(value, length);
      length += value.length;
      count(Math.min(length, file.size));
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new TritonLoadError("truncated", `${url} broke off after ${length} of ${file.size} bytes. Try again.`, error);
  }
  const found = length === file.size ? hex(await crypto.subtle.digest("SHA-256", bytes)) : `${length} bytes`;
  if (found !== file.sha256) {
    const wanted = length === file.size ? file.sha256 : `${file.size} bytes`;
    throw new TritonLoadError("integrity", `${url} has ${found}, and the index says ${wanted}. Tell whoever hosts it.`);
  }
  return bytes;
}

function hex(buffer) {
  return Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function compile(response) {
  return WebAssembly.compileStreaming(response);
}

// The bytes are right, so it was the type they came with; a host that knows no WebAssembly costs time and no more.
async function makeOf(bytes, error) {
  if (!(error instanceof TypeError)) throw outOfMemory(error) ?? error;
  return WebAssembly.compile(bytes);
}

// ---- into Pyodide

async function install(pyodide, build, module, tree) {
  const { FS, _module: M } = pyodide;
  const site = pyodide.runPython("import site; site.getsitepackages()[0]");
  const path = `${site}/${build.module.install}`;
  try {
    pyodide.unpackArchive(tree, "zip", { extractDir: site });
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    FS.writeFile(path, new Uint8Array()); // to be found by an import, which then takes what is loaded already
    M.preloadedWasm[path] = await instantiate(M, module, path);
    pyodide.runPython("import importlib; importlib.invalidate_caches()");
  } catch (error) {
    throw outOfMemory(error) ?? new TritonLoadError("install", `The module does not load: ${error.message}`, error);
  }
}

// Emscripten would instantiate a compiled module synchronously, which browsers refuse on the main thread beyond 8 MB. So
// it is given bytes: no more than the section that it reads itself, in whose place the engine gets the module.
async function instantiate(M, module, path) {
  const [section] = WebAssembly.Module.customSections(module, "dylink.0");
  const stub = moduleOf("dylink.0", new Uint8Array(section));
  const { instantiate: real } = WebAssembly;
  WebAssembly.instantiate = async (source, imports) =>
    source === stub ? { module, instance: await real(module, imports) } : real(source, imports);
  try {
    return await M.loadWebAssemblyModule(stub, { loadAsync: true, nodelete: true }, path, {});
  } finally {
    WebAssembly.instantiate = real;
  }
}

function moduleOf(name, payload) {
  const size = leb(1 + name.length + payload.length);
  const bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0, ...size, name.length, ...new TextEncoder().encode(name), ...payload];
  return new Uint8Array(Math.max(24, bytes.length)).fill(0).map((_, at) => bytes[at] ?? 0); // 24 are looked at
}

function leb(value) {
  const bytes = [];
  do bytes.push((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
  while ((value >>>= 7));
  return bytes;
}

function importAll(pyodide, names) {
  try {
    for (const name of names) pyodide.pyimport(name).destroy();
  } catch (error) {
    const said = String(error.message).trimEnd().split("\n").at(-1);
    throw outOfMemory(error) ?? new TritonLoadError("import", `${names.join(", ")} cannot be imported: ${said}`, error);
  }
}

function outOfMemory(error) {
  if (!(error instanceof RangeError) && !/out of memory|could not allocate/i.test(error.message)) return undefined;
  return new TritonLoadError("memory", "There is too little memory for the module. Close other pages and try again.", error);
}

// ---- the network and what is kept of it

async function request(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw await whyNot(url, error);
  }
  if (!response.ok) throw new TritonLoadError("status", `${url} is answered with status ${response.status}.`);
  if (/^text\/html\b/i.test(response.headers.get("Content-Type") ?? "")) {
    throw new TritonLoadError("content", `${url} is answered with a page of HTML. Look at what the host serves there.`);
  }
  return response;
}

// A script is told no more than "Failed to fetch"; an answer that it may not read shows that there is one.
async function whyNot(url, error) {
  if (globalThis.location && (await fetch(url, { mode: "no-cors" }).catch(() => undefined))) {
    return new TritonLoadError("cors", `${url} comes without Access-Control-Allow-Origin. Have its host send that.`, error);
  }
  const offline = globalThis.navigator?.onLine === false;
  const said = offline ? "This device is offline, and no earlier visit has left" : "Nobody answers for";
  return new TritonLoadError(offline ? "offline" : "unreachable", `${said} ${url}.`, error);
}

async function remembered(url) {
  try {
    return await (await caches.open(CACHE)).match(url);
  } catch {
    return undefined; // Node has none, nor has a page without https
  }
}

// A cache that is full or forbidden costs the next visit time, and this one nothing.
async function remember(url, body, type) {
  try {
    const headers = { "Content-Type": type, "Content-Length": String(body.length) };
    await (await caches.open(CACHE)).put(url, new Response(body, { headers }));
  } catch {}
}

function stopwatch() {
  const started = performance.now();
  const laps = {};
  const lap = (name) => { laps[name] = (performance.now() - started) / 1000; };
  return Object.assign(lap, { laps });
}
