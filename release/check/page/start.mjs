// Starts the harness where the address of the page says: on its main thread, or in a module worker.

const { searchParams } = new URL(location.href);
const harness = `./harness.mjs?attempt=${searchParams.get("attempt")}`;

if (searchParams.get("place") === "worker") new Worker(harness, { type: "module" });
else await import(harness);
