// amem's plugin: asks the hook program before a tool, and leaves the session's messages where the hooks can read them.
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";

const HOOK = @HOOK@;
const TRIES = 4; // OpenCode itself tries for ever on 429, 5xx and a refused connection (1.18.33, 2026-11)
const FOLDER = `${homedir()}/.amem/opencode`;
const children = new Set(); // sessions of subagents

function hook(kind, event) {
  const done = spawnSync(HOOK[0], [...HOOK.slice(1), "hook", kind, "opencode"], {
    input: JSON.stringify(event), encoding: "utf8", timeout: 15000,
  });
  return { code: done.status, said: (done.stderr ?? "").trim() };
}

// Sessions are kept in SQLite; the turns are wanted as lines of {info, parts}.
async function keep(client, sessionID) {
  if (!/^[A-Za-z0-9_-]+$/.test(sessionID ?? "")) return undefined;
  const found = await client.session.messages({ path: { id: sessionID } });
  const folder = children.has(sessionID) ? `${FOLDER}/subagents` : FOLDER;
  const path = `${folder}/${sessionID}.jsonl`;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, (found.data ?? []).map((message) => JSON.stringify(message) + "\n").join(""), { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return path;
}

async function note(client, kind, sessionID, trigger) {
  try {
    hook(kind, { session_id: sessionID, trigger, transcript_path: await keep(client, sessionID) });
  } catch {
    hook(kind, { session_id: sessionID, trigger }); // a note without the turns is better than none
  }
}

export const Amem = async ({ client, directory }) => ({
  "tool.execute.before": async (input, output) => {
    const { code, said } = hook("pre-tool", {
      cwd: directory, session_id: input.sessionID, tool_name: input.tool, tool_input: output.args,
    });
    // Whatever is not a plain yes stops the tool: a hook that died, or that took too long, has not looked.
    if (code !== 0) throw new Error(said || "amem: the memory hook gave no answer, so the tool may not run");
    await keep(client, input.sessionID).catch(() => undefined); // a kill while the tool runs gives no other chance
  },
  "experimental.session.compacting": async (input) => note(client, "pre-compact", input.sessionID, "auto"),
  event: async ({ event }) => {
    if (event.type === "session.created" && event.properties.info?.parentID) children.add(event.properties.info.id);
    if (event.type === "session.idle") {
      const id = event.properties.sessionID;
      // The session is not over with a subagent's: only its turns are kept.
      await (children.has(id) ? keep(client, id).catch(() => undefined) : note(client, "session-end", id, "idle"));
    }
    const status = event.type === "session.status" ? event.properties.status : undefined;
    if (status?.type === "retry" && status.attempt >= TRIES && process.argv.includes("run")) {
      console.error(`amem: the provider failed ${status.attempt} times in a row, so the run ends: ${status.message}`);
      process.exit(1);
    }
  },
});
