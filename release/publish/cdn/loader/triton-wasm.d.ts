/** What a Pyodide has to offer; its own type `PyodideInterface` fits. */
export interface Pyodide {
  runPython(code: string): unknown;
  pyimport(name: string): unknown;
  unpackArchive(buffer: Uint8Array, format: string, options: { extractDir: string }): void;
}

/** Bytes are those of the files unpacked, whatever travelled; `total` is 0 where a stage counts none. */
export interface LoadProgress {
  stage: "index" | "pyodide" | "download" | "install" | "import" | "ready";
  loaded: number;
  total: number;
  /** Whether an earlier visit had left all of it with the Cache API. */
  cached: boolean;
}

export interface LoadOptions {
  /** A Pyodide that runs already. */
  pyodide?: Pyodide;
  /** Or the folder of one, to be started: by default jsDelivr's, at the version that the package was built for. */
  pyodideURL?: string | URL;
  /** Of the package; by default the one that `latest.json` names. */
  version?: string;
  /** The root of the CDN tree; by default the one that this file lies in. */
  base?: string | URL;
  onProgress?: (progress: LoadProgress) => void;
  /** Ends the load; the promise is then rejected with the signal's reason. */
  signal?: AbortSignal;
}

export interface Loaded {
  pyodide: Pyodide;
  name: string;
  version: string;
  /** The Pyodide ABI of the build that was loaded, such as `2026_5`. */
  abi: string;
  /** Seconds since the call, at the end of each stage. */
  timings: Record<string, number>;
  /** Fulfilled when the files are kept for the next visit, or cannot be. */
  stored: Promise<void>;
}

export type LoadErrorCode =
  | "abi" // no build for this Pyodide
  | "version" // no such version in the tree
  | "status" // an answer other than 200
  | "content" // an answer that is something else: a page of HTML, an index that is none
  | "integrity" // another SHA-256 or size than the index says
  | "truncated" // the answer broke off
  | "cors" // the host forbids pages of other origins to read it
  | "offline"
  | "unreachable"
  | "memory"
  | "pyodide" // Pyodide itself does not start
  | "install"
  | "import";

/** `message` is a sentence for people, with what to do where there is something. */
export class TritonLoadError extends Error {
  readonly code: LoadErrorCode;
  constructor(code: LoadErrorCode, message: string, cause?: unknown);
}

/**
 * Load the package and import it. For the same Pyodide it happens once, however often it is asked for; after a failure it
 * can be asked for again.
 */
export function loadTriton(options?: LoadOptions): Promise<Loaded>;
