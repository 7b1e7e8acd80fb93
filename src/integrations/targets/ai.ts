import { type Static, t } from 'elysia'
import type { PublicCtx } from '../../accounts/context'
import { config } from '../../config'
import { slot } from '../../core/extension'
import type { FieldError } from '../../core/problem'
import { id, line } from '../../core/shapes'
import type { TargetInvocation } from '../invocation'
import { type Referable, type TargetKind, validateSource } from './target-kind'

/** The built-in source, which echoes its input. */
export const ECHO_SOURCE_ID = 'echo'

const optionalNumber = (minimum: number, maximum: number) => t.Optional(t.Number({ minimum, maximum }))
const optionalInteger = (minimum: number, maximum: number, description: string) =>
  t.Optional(t.Number({ multipleOf: 1, minimum, maximum, description }))
const optionalNames = (description: string) => t.Optional(t.Array(line(200, 1), { maxItems: 100, description }))

const shape = t.Object({
  sourceId: { ...id, description: 'a connection of the kind openai, or `echo`' },
  model: t.Optional(line(200, 1)),
  description: t.Optional(t.String({ maxLength: 10_000 })),
  systemPrompt: t.Optional(t.String({ maxLength: 100_000 })),
  temperature: optionalNumber(0, 2),
  top_p: optionalNumber(0, 1),
  max_tokens: optionalInteger(1, 1_000_000, 'maximum number of tokens of an answer'),
  frequency_penalty: optionalNumber(-2, 2),
  presence_penalty: optionalNumber(-2, 2),
  tools: optionalNames('ids of integrations with the trigger `tool`'),
  blueprints: optionalNames('keys of blueprints offered as tools'),
  vectorStores: optionalNames('scopes or ids of vector stores'),
  maxToolRounds: optionalInteger(0, 50, 'default: 8'),
  historyTokens: optionalInteger(
    100,
    1_000_000,
    'tokens of a thread that are sent to the model verbatim; default: 16,000',
  ),
  recordThread: t.Optional(
    t.Boolean({ description: 'whether conversations outside of threads are stored as threads' }),
  ),
  allowSystemMessages: t.Optional(t.Boolean({ description: 'whether clients may send messages as `system`' })),
  forbidClientRules: t.Optional(
    t.Boolean({
      description: 'whether system messages of OpenAI clients are refused; otherwise they are rules below the prompt',
    }),
  ),
})
export type AiTarget = Static<typeof shape>

type AiRunner = (ctx: PublicCtx, target: AiTarget, invocation: TargetInvocation) => Promise<Response>

/** The function that runs targets of the kind `ai`. */
export const aiRunner = slot<AiRunner>('runner of AI targets')

/** A language model. */
export const ai: TargetKind<typeof shape> = {
  shape,
  area: 'ai',
  maxAttempts: 10,
  async validate(referable, { sourceId, tools = [], blueprints: keys = [] }) {
    return [
      ...(sourceId === ECHO_SOURCE_ID ? validateEcho() : await validateModel(referable, sourceId)),
      ...listUnknownNames(
        '/tools',
        'There is no integration with the trigger tool and this id.',
        tools,
        await referable.findToolIds(tools),
      ),
      ...listUnknownNames(
        '/blueprints',
        'There is no blueprint with this key.',
        keys,
        await referable.findBlueprintKeys(keys),
      ),
    ]
  },
  run: (ctx, target, invocation) => aiRunner()(ctx, target, invocation),
}

const validateEcho = (): FieldError[] =>
  config.ATOLL_AI_ECHO === 'on'
    ? []
    : [{ path: '/sourceId', message: 'The built-in source is disabled (ATOLL_AI_ECHO). Use an integration source.' }]

const validateModel = async (referable: Referable, sourceId: string) =>
  (await validateSource(referable, sourceId, 'openai')).map(({ path, message }) => ({
    path,
    message: `${message} The built-in one is called ${ECHO_SOURCE_ID}.`,
  }))

const listUnknownNames = (path: string, message: string, names: string[], knownNames: string[]): FieldError[] =>
  names.flatMap((name, n) => (knownNames.includes(name) ? [] : [{ path: `${path}/${n}`, message }]))
