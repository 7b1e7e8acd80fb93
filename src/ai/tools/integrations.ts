import { and, eq, inArray } from 'drizzle-orm'
import { refuseBeyond } from '../../accounts/permissions'
import { Problem } from '../../core/problem'
import { DEEPEST } from '../../plugins/integrations/causing'
import { mayRun } from '../../plugins/integrations/permission'
import { perform, targetOf } from '../../plugins/integrations/running'
import { type Row, integrations as table } from '../../plugins/integrations/tables'
import type { Trigger } from '../../plugins/integrations/triggers'
import { askedFor } from '../../plugins/lambdas/asked'
import type { Calling, Tool, ToolKind } from './tool'

/** Integrations with the trigger `tool`: lambdas, other servers, mails, other agents, whatever their targets are. */
export const integrations: ToolKind = async (ctx, ids) => {
  if (!ids.length) return []
  const { _id, triggerKind, active } = table
  const those = and(inArray(_id, ids), eq(triggerKind, 'tool'), eq(active, true))
  const rows = await ctx.db.select().from(table).where(those)
  const inOrder = ids.flatMap((id) => rows.find((row) => row._id === id) ?? [])
  return inOrder.filter((row) => mayRun(ctx, row)).map(toolOf)
}

function toolOf(row: Row): Tool {
  const { name, description, parameters } = row.trigger as Trigger<'tool'>
  const told = { type: 'object', ...(parameters ?? (row.targetKind === 'ai' ? A_MESSAGE : { properties: {} })) }
  return { name, description, parameters: told, run: (calling, input) => run(row, calling, input) }
}

/** What another agent takes, where nothing else is said. */
const A_MESSAGE = {
  properties: { message: { type: 'string', description: 'what it is asked' } },
  required: ['message'],
}

async function run(row: Row, { ctx, request, signal, depth, query, agents }: Calling, body: Record<string, unknown>) {
  refuseBeyond(ctx.actor, targetOf(row).area, 'write')
  if (depth >= DEEPEST) throw new Problem(409, 'TOO_DEEP', 'Agents call each other in a circle. This one stops here.')
  if (row.targetKind === 'ai' && --agents.left < 0)
    throw new Problem(409, 'TOO_MANY_AGENTS', 'Agents have called each other too often. Answer with what you know.')
  const asked = askedFor({ method: 'POST', path: '/', query, body })
  const occasion = { _id: Bun.randomUUIDv7() as string, trigger: 'tool' as const, asked, request, signal, agents }
  const response = await perform(ctx, row, occasion, depth + 1)
  const answer = read(await response.text())
  if (response.status < 400) return answer
  throw new Problem(502, 'TOOL_FAILED', `It answered ${response.status}.`, { details: answer })
}

function read(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
