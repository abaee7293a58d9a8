// What the TypeScript drivers share. The SDK is resolved from the folder the driver is started in.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "here.js"));
export const load = (name) => import(pathToFileURL(require.resolve(name).replace(/\.cjs$/, ".mjs")));

export const WATCHED = "shoal://events/journal";
export let failures = 0;

export function check(ok, name, detail = "") {
  if (!ok) failures += 1;
  console.log(ok ? "ok  " : "FAIL", name, ok ? "" : JSON.stringify(detail)?.slice(0, 400) ?? String(detail));
}

export async function refused(name, call, code) {
  try {
    check(false, name, await call);
  } catch (error) {
    check(error.code === code, name, `${error.code} ${error.message}`);
  }
}

// Each half of a tool result tells status and address on its own.
export function bothHalves(name, result) {
  const summary = result.structuredContent?.summary ?? {};
  const line = result.content.at(-1)?.text ?? "";
  check(summary.status === "ok" && summary.uri, `${name}: structured half`, result.structuredContent);
  check(line.startsWith("[shoal] status=ok") && line.includes(`uri=${summary.uri}`), `${name}: text half`, line);
  return summary.uri;
}

// A promise for the first update, with an end.
export function firstUpdate(listen) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no update within 30 s")), 30_000);
    listen((notification) => {
      clearTimeout(timer);
      resolve(notification.params);
    });
  });
}
