import { inArray } from 'drizzle-orm'
import { type Static, t } from 'elysia'
import type { OpenCtx } from '../../../accounts/guard'
import { blueprints } from '../../../blueprints/tables'
import { config } from '../../../config'
import type { Flaw } from '../../../core/problem'
import { id, line } from '../../../core/shapes'
import type { Tx } from '../../../storage/port'
import type { Performed } from '../occasion'
import { integrations } from '../tables'
import { sourceFlaws, type TargetKind } from './target'

/** The source that is always there, and says what it was told. */
export const ECHO = 'echo'

const between = (minimum: number, maximum: number) => t.Optional(t.Number({ minimum, maximum }))
const whole = (minimum: number, maximum: number, description: string) =>
  t.Optional(t.Number({ multipleOf: 1, minimum, maximum, description }))
const names = (description: string) => t.Optional(t.Array(line(200, 1), { maxItems: 100, description }))

const shape = t.Object({
  sourceId: { ...id, description: 'a connection of the kind openai, or `echo`' },
  model: t.Optional(line(200, 1)),
  description: t.Optional(t.String({ maxLength: 10_000 })),
  systemPrompt: t.Optional(t.String({ maxLength: 100_000 })),
  temperature: between(0, 2),
  top_p: between(0, 1),
  max_tokens: whole(1, 1_000_000, 'of an answer'),
  frequency_penalty: between(-2, 2),
  presence_penalty: between(-2, 2),
  tools: names('integrations with the trigger `tool`, by their ids'),
  blueprints: names('offered as tools, by their keys'),
  vectorStores: names('scopes, or the ids of stores'),
  maxToolRounds: whole(0, 50, '8 unless told'),
  historyTokens: whole(100, 1_000_000, 'of a thread that the model is told as it was said, 16,000 unless told'),
  recordThread: t.Optional(t.Boolean({ description: 'whether what is said outside of threads becomes one' })),
  allowSystemMessages: t.Optional(t.Boolean({ description: 'whether clients may send messages as `system`' })),
})
export type AiTarget = Static<typeof shape>

type Runner = (ctx: OpenCtx, target: AiTarget, occasion: Performed) => Promise<Response>

let runner: Runner

/** Says by whom targets are run that are another area's. */
export function targetsAreRunBy({ ai }: { ai: Runner }) {
  runner = ai
}

/** A model. */
export const ai: TargetKind<typeof shape> = {
  shape,
  area: 'ai',
  attempts: 10,
  async flaws(tx, { sourceId, tools = [], blueprints: keys = [] }) {
    return [
      ...(sourceId === ECHO ? echoFlaws() : await modelFlaws(tx, sourceId)),
      ...flawed('/tools', 'There is no integration with the trigger tool of this id.', tools, await toolsIn(tx, tools)),
      ...flawed('/blueprints', 'There is no blueprint of this key.', keys, await keysIn(tx, keys)),
    ]
  },
  run: (ctx, target, occasion) => runner(ctx, target, occasion),
}

const echoFlaws = (): Flaw[] =>
  config.ATOLL_AI_ECHO === 'on'
    ? []
    : [{ path: '/sourceId', message: 'The built-in source is off here (ATOLL_AI_ECHO). Name an integration source.' }]

const modelFlaws = async (tx: Tx, sourceId: string) =>
  (await sourceFlaws(tx, sourceId, 'openai')).map(({ path, message }) => ({
    path,
    message: `${message} The built-in one is called ${ECHO}.`,
  }))

const flawed = (path: string, message: string, named: string[], known: string[]): Flaw[] =>
  named.flatMap((one, n) => (known.includes(one) ? [] : [{ path: `${path}/${n}`, message }]))

const toolsIn = async (tx: Tx, ids: string[]) => {
  const { _id, triggerKind } = integrations
  const rows = ids.length ? await tx.select({ _id, triggerKind }).from(integrations).where(inArray(_id, ids)) : []
  return rows.filter(({ triggerKind }) => triggerKind === 'tool').map(({ _id }) => _id)
}

const keysIn = async (tx: Tx, keys: string[]) => {
  const { key } = blueprints
  const rows = keys.length ? await tx.select({ key }).from(blueprints).where(inArray(key, keys)) : []
  return rows.map(({ key }) => key)
}
