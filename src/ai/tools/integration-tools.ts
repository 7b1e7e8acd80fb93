import { and, eq, inArray } from 'drizzle-orm'
import { assertScope } from '../../accounts/permissions'
import { tryParseJson } from '../../core/json'
import { Problem } from '../../core/problem'
import { MAX_RUN_DEPTH } from '../../integrations/loop-guard'
import { mayRun } from '../../integrations/permission'
import { runTarget } from '../../integrations/run-job'
import { type IntegrationRow, integrations as table } from '../../integrations/tables'
import { targets } from '../../integrations/targets/index'
import type { Trigger } from '../../integrations/triggers/index'
import { inputToLambdaRequest } from '../../lambdas/request'
import type { Tool, ToolContext, ToolKind } from './tool'

/** Returns the active integrations with the trigger `tool`, of any target, that the caller may run. */
export const loadIntegrationTools: ToolKind = async (ctx, ids) => {
  if (!ids.length) return []
  const { _id, triggerKind, active } = table
  const activeTools = and(inArray(_id, ids), eq(triggerKind, 'tool'), eq(active, true))
  const rows = await ctx.db.select().from(table).where(activeTools)
  const inOrder = ids.flatMap((id) => rows.find((row) => row._id === id) ?? [])
  return inOrder.filter((row) => mayRun(ctx, row)).map(toTool)
}

function toTool(row: IntegrationRow): Tool {
  const { name, description, parameters } = row.trigger as Trigger<'tool'>
  const parameterSchema = {
    type: 'object',
    ...(parameters ?? (row.targetKind === 'ai' ? MESSAGE_PARAMETERS : { properties: {} })),
  }
  return {
    name,
    description,
    parameters: parameterSchema,
    effect: 'unknown',
    run: (toolContext, input) => runIntegrationTool(row, toolContext, input),
  }
}

/** The default parameters of an agent that is a tool. */
const MESSAGE_PARAMETERS = {
  properties: { message: { type: 'string', description: 'the message to the agent' } },
  required: ['message'],
}

async function runIntegrationTool(
  row: IntegrationRow,
  { ctx, request, signal, depth, query, agents }: ToolContext,
  body: Record<string, unknown>,
) {
  assertScope(ctx.actor, targets[row.targetKind].area, 'write')
  if (depth >= MAX_RUN_DEPTH)
    throw new Problem(409, 'TOO_DEEP', 'Agents call each other in a cycle. This call was not made.')
  if (row.targetKind === 'ai' && --agents.left < 0)
    throw new Problem(409, 'TOO_MANY_AGENTS', 'Agents have called each other too often. Answer with what you know.')
  const lambdaRequest = inputToLambdaRequest({ method: 'POST', path: '/', query, body })
  const invocation = {
    _id: Bun.randomUUIDv7() as string,
    trigger: 'tool' as const,
    input: lambdaRequest,
    request,
    signal,
    agents,
  }
  const response = await runTarget(ctx, row, invocation, depth + 1)
  const text = await response.text()
  const answer = tryParseJson(text, text)
  if (response.status < 400) return answer
  throw new Problem(502, 'TOOL_FAILED', `The tool answered ${response.status}.`, { details: answer })
}
