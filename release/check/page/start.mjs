// Starts the harness where the address of the page says: on its main thread, or in a module worker.

const { searchParams } = new URL(location.href);
const harness = `./harness.mjs?attempt=${searchParams.get("attempt")}`;

if (searchParams.get("place") === "worker") {
  const worker = new Worker(harness, { type: "module" });
  worker.onerror = (event) => { throw new Error(event.message ?? "the worker does not start"); };
} else {
  await import(harness);
}
