// Compiles the module it is given, as loading it would, and prints what V8 objects to as one line of JSON.
import { readFileSync } from "node:fs";

// One function holding an empty try_table: says whether V8 takes the newer exception handling at all.
const tryTable = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, // magic, version
  1, 4, 1, 0x60, 0, 0, // type: () -> ()
  3, 2, 1, 0, // function: of that type
  10, 8, 1, 6, 0, 0x1f, 0x40, 0, 0x0b, 0x0b, // code: try_table, void, no catches, end; end
);

function objection(bytes) {
  try {
    new WebAssembly.Module(bytes);
    return null;
  } catch (error) {
    return error.message.replace(/^WebAssembly\.Module\(\): /, "");
  }
}

const bytes = readFileSync(process.argv[2]);
console.log(JSON.stringify({ tryTable: objection(tryTable), module: objection(bytes) }));
