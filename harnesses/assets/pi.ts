// amem's extension for pi: asks the hook program before a tool, and has it leave notes.
import { spawnSync } from "node:child_process";

const HOOK: string[] = @HOOK@;

function hook(kind: string, event: object): { code: number | null; said: string } {
  const done = spawnSync(HOOK[0], [...HOOK.slice(1), "hook", kind, "pi"], {
    input: JSON.stringify(event), encoding: "utf8", timeout: 15000,
  });
  return { code: done.status, said: (done.stderr ?? "").trim() };
}

const where = (ctx: any) => ({
  cwd: ctx?.cwd ?? process.cwd(),
  session_id: ctx?.sessionManager?.getSessionId?.(),
  transcript_path: ctx?.sessionManager?.getSessionFile?.(),
});

export default function (pi: any) {
  pi.on("tool_call", async (event: any, ctx: any) => {
    const { code, said } = hook("pre-tool", { ...where(ctx), tool_name: event.toolName, tool_input: event.input });
    // Whatever is not a plain yes stops the tool: a hook that died, or that took too long, has not looked.
    if (code !== 0) return { block: true, reason: said || "amem: the memory hook gave no answer, so the tool may not run" };
  });
  pi.on("session_before_compact", async (event: any, ctx: any) => {
    hook("pre-compact", { ...where(ctx), trigger: event.reason });
  });
  pi.on("session_shutdown", async (event: any, ctx: any) => {
    hook("session-end", { ...where(ctx), reason: event.reason });
  });
}
