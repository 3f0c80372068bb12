// node load.mjs PYODIDE FORM FOLDER CODE: load the package in FOLDER as one of its forms into a stock Pyodide, run CODE.
// Prints one line of JSON: what errorCallback was told, what CODE gave, or the message of what was thrown.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodideFolder, form, folder, code] = process.argv.slice(2);
const errors = [];
const callbacks = { messageCallback: () => {}, errorCallback: (text) => errors.push(text) };
const named = (ending) => path.join(folder, fs.readdirSync(folder).find((name) => name.endsWith(ending)));

const forms = {
  wheel: async (loadPyodide) => {
    const pyodide = await loadPyodide();
    await pyodide.loadPackage(named(".whl"), callbacks);
    return pyodide;
  },
  zip: async (loadPyodide) => {
    const pyodide = await loadPyodide();
    // Not the Buffer itself, which unpackArchive refuses.
    const archive = new Uint8Array(fs.readFileSync(named(".zip")));
    pyodide.unpackArchive(archive, "zip", { extractDir: pyodide.runPython("import site; site.getsitepackages()[0]") });
    pyodide.runPython("import importlib; importlib.invalidate_caches()");
    return pyodide;
  },
  lock: async (loadPyodide) => {
    const lockFileURL = path.join(folder, "pyodide-lock.json");
    const pyodide = await loadPyodide({ lockFileURL, packageBaseUrl: folder });
    const [name] = Object.keys(JSON.parse(fs.readFileSync(lockFileURL, "utf8")).packages);
    await pyodide.loadPackage(name, callbacks);
    return pyodide;
  },
};

// Everything is caught: an error that is not makes Node print the whole of Pyodide's source line, 1.3 MB.
try {
  const { loadPyodide } = await import(pathToFileURL(path.join(pyodideFolder, "pyodide.mjs")));
  const pyodide = await forms[form](loadPyodide);
  console.log(JSON.stringify({ errors, result: pyodide.runPython(code) }));
} catch (error) {
  console.log(JSON.stringify({ errors, thrown: String(error?.message ?? error).trim().split("\n").at(-1) }));
}
