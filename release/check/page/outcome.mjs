// What the harnesses in Node and in a browser share: loading by name or file, and saying in one line what went wrong.

const DETAIL_LIMIT = 64 * 1024; // characters of one traceback or stack

// A case may have closed its streams; that is no failure.
export const FLUSH = `
import contextlib, sys
with contextlib.suppress(ValueError): sys.__stdout__.flush()
with contextlib.suppress(ValueError): sys.__stderr__.flush()
`;

// Pyodide does not throw for a package that it could not load: it complains and returns.
export async function loadPackage(pyodide, name) {
  const complaints = [];
  const messageCallback = () => {};
  const errorCallback = (complaint) => complaints.push(complaint);
  const loaded = await pyodide.loadPackage(name, { messageCallback, errorCallback });
  if (complaints.length) throw refusal(`loadPackage says: ${complaints.join("; ")}`);
  if (!loaded.length) throw refusal(`loadPackage loaded nothing for ${name}`);
}

// What the harness itself has to say against a package; its message is the whole message.
export function refusal(message) {
  return Object.assign(new Error(message), { isRefusal: true });
}

export function isPythonError(error) {
  return error?.name === "PythonError" && typeof error.type === "string";
}

// The traceback or the stack, for the output; nothing where the summary says it all.
export function detail(error) {
  const text = isPythonError(error) ? error.message : error?.stack;
  return text && !error.isRefusal ? `${String(text).slice(0, DETAIL_LIMIT).trimEnd()}\n` : "";
}

export function summary(error) {
  if (error?.isRefusal) return error.message;
  if (isPythonError(error)) return lastOfTraceback(error);
  return error instanceof Error ? `${error.name}: ${error.message}` : `a thrown ${typeof error}: ${String(error)}`;
}

// "module.Type: message" ends a traceback; the message may itself have several lines.
function lastOfTraceback({ message, type }) {
  const lines = message.trimEnd().split("\n");
  const start = lines.findLastIndex((line) => line.split(":")[0].trim().split(".").at(-1) === type);
  return lines.slice(start).join("\n");
}
