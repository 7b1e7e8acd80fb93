import { type Static, t } from 'elysia'
import { id, line, partialOf, roleName, text, textMatching, time, withMessage } from '../core/shapes'

const maybe = t.Optional
const integer = (minimum: number, maximum: number, description: string) =>
  t.Number({ multipleOf: 1, minimum, maximum, description })

const VARIABLE_MESSAGE =
  'Begin the name of a variable with a letter or _, and use only letters, digits and _ (128 characters at most).'
const variableName = textMatching('^[A-Za-z_][A-Za-z0-9_]{0,127}$', VARIABLE_MESSAGE)

export const Lambda = t.Object({
  _id: id,
  name: t.String(),
  description: t.String(),
  code: t.String(),
  timeoutMs: t.Number(),
  memoryMb: t.Number(),
  env: t.Array(t.String(), { description: 'names of its environment variables; only the lambda can read the values' }),
  serviceRole: t.Nullable(t.String()),
  version: t.Number({ description: 'the version of its code, counted up by each change' }),
  created: time,
  updated: time,
})
export type Lambda = Static<typeof Lambda>

export const LambdaEnv = t.Union(
  [
    t.Record(variableName, t.Nullable(text(32 << 10)), {
      ...{ maxProperties: 100, additionalProperties: false },
      ...withMessage(VARIABLE_MESSAGE),
    }),
    t.Array(variableName, { maxItems: 100 }),
  ],
  { description: 'values by name, stored encrypted; null removes one. A list of names keeps only these.' },
)

export const NewLambda = t.Object({
  name: line(200, 1),
  description: maybe(text(10_000)),
  code: t.String({
    minLength: 1,
    maxLength: 256 << 10,
    description: 'an ES module in JavaScript or TypeScript: `export default async (request, atoll) => …`',
  }),
  timeoutMs: maybe(integer(10, 30_000, 'maximum duration of a run; default: 5000')),
  memoryMb: maybe(integer(1, 256, 'maximum memory of a run; default: 64')),
  env: maybe(LambdaEnv),
  serviceRole: maybe(
    t.Nullable(roleName, { description: 'a role: the lambda acts with its rights, instead of those of its caller' }),
  ),
})
export type NewLambda = Static<typeof NewLambda>

export const LambdaChange = partialOf(NewLambda)
export type LambdaChange = Static<typeof LambdaChange>

export const Version = t.Object({
  version: t.Number(),
  code: t.String(),
  user: t.Nullable(id, { description: 'the user who wrote it' }),
  created: time,
})

export const Rollback = t.Object({ version: integer(1, Number.MAX_SAFE_INTEGER, 'the version to restore') })

/** The request that a lambda receives in a manual run. All fields are optional. */
export const Input = t.Object({
  method: maybe(line(20, 1)),
  path: maybe(line(2_000)),
  query: maybe(t.Record(t.String(), t.Unknown())),
  headers: maybe(t.Record(t.String(), t.String())),
  body: maybe(t.Unknown()),
  rawBody: maybe(t.String()),
  event: maybe(t.Unknown()),
})
export type Input = Static<typeof Input>

export const LambdaLogLine = t.Object({
  at: t.Number({ description: 'ms since the run began' }),
  level: t.Union([t.Literal('debug'), t.Literal('info'), t.Literal('warn'), t.Literal('error')]),
  text: t.String(),
})
export const LambdaFailure = t.Object({ code: t.String(), message: t.String(), stack: maybe(t.String()) })

export const Execution = t.Object({
  result: maybe(t.Unknown({ description: 'what the lambda returned' })),
  error: maybe(LambdaFailure),
  logs: t.Array(LambdaLogLine),
  durationMs: t.Number(),
})

export const LambdaRun = t.Object({
  _id: id,
  version: t.Number(),
  trigger: t.String({ description: 'what triggered it: `execute`, `webhook`, `event`, `schedule` …' }),
  status: t.Number({ description: 'the status of the response, or of the failure' }),
  error: t.Nullable(LambdaFailure),
  started: time,
  duration: t.Number({ description: 'ms' }),
  user: t.Nullable(id),
  logs: t.Array(LambdaLogLine),
})
export type LambdaRun = Static<typeof LambdaRun>

/** What the log has about the runs of one lambda. */
export const RunSummary = t.Object({
  lambda: id,
  runs: t.Number({ description: 'how many runs the log has' }),
  failures: t.Number({ description: 'how many of them failed' }),
  lastRun: time,
  lastFailure: t.Nullable(time),
})
export type RunSummary = Static<typeof RunSummary>
