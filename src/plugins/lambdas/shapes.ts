import { type Static, t } from 'elysia'
import { change, id, line, roleName, text, textMatching, time, withMessage } from '../../core/shapes'

const maybe = t.Optional
const whole = (minimum: number, maximum: number, description: string) =>
  t.Number({ multipleOf: 1, minimum, maximum, description })

const VARIABLE =
  'Begin the name of a variable with a letter or _, and use only letters, digits and _ (128 characters at most).'
const variable = textMatching('^[A-Za-z_][A-Za-z0-9_]{0,127}$', VARIABLE)

export const Lambda = t.Object({
  _id: id,
  name: t.String(),
  description: t.String(),
  code: t.String(),
  timeoutMs: t.Number(),
  memoryMb: t.Number(),
  env: t.Array(t.String(), { description: 'the names of its environment; its values are told to the lambda only' }),
  serviceRole: t.Nullable(t.String()),
  version: t.Number({ description: 'of its code: each change of it makes another' }),
  created: time,
  updated: time,
})
export type Lambda = Static<typeof Lambda>

export const NewLambda = t.Object({
  name: line(200, 1),
  description: maybe(text(10_000)),
  code: t.String({
    minLength: 1,
    maxLength: 256 << 10,
    description: 'an ES module in JavaScript or TypeScript: `export default async (request, atoll) => …`',
  }),
  timeoutMs: maybe(whole(10, 30_000, 'how long a run may take; 5000 unless told')),
  memoryMb: maybe(whole(1, 256, 'how much memory a run may take; 64 unless told')),
  env: maybe(
    t.Union(
      [
        t.Record(variable, t.Nullable(text(32 << 10)), {
          ...{ maxProperties: 100, additionalProperties: false },
          ...withMessage(VARIABLE),
        }),
        t.Array(variable, { maxItems: 100 }),
      ],
      { description: 'values by name, which are kept encrypted; null removes one. A list of names keeps these only.' },
    ),
  ),
  serviceRole: maybe(
    t.Nullable(roleName, { description: 'a role: the lambda acts with its rights, instead of those of its caller' }),
  ),
})
export type NewLambda = Static<typeof NewLambda>

export const LambdaChange = change(NewLambda)
export type LambdaChange = Static<typeof LambdaChange>

export const Version = t.Object({
  version: t.Number(),
  code: t.String(),
  user: t.Nullable(id, { description: 'who wrote it' }),
  created: time,
})

export const Rollback = t.Object({ version: whole(1, Number.MAX_SAFE_INTEGER, 'the one whose code is to run again') })

/** What a lambda is given to see of a request. All of it may be left out in a run by hand. */
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

const LogLine = t.Object({
  at: t.Number({ description: 'ms since the run began' }),
  level: t.Union([t.Literal('debug'), t.Literal('info'), t.Literal('warn'), t.Literal('error')]),
  text: t.String(),
})
const Failure = t.Object({ code: t.String(), message: t.String(), stack: maybe(t.String()) })

export const Execution = t.Object({
  result: maybe(t.Unknown({ description: 'what the lambda returned' })),
  error: maybe(Failure),
  logs: t.Array(LogLine),
  durationMs: t.Number(),
})

export const LambdaRun = t.Object({
  _id: id,
  version: t.Number(),
  trigger: t.String({ description: 'what it was run by: `execute`, `webhook`, `event`, `schedule` …' }),
  status: t.Number({ description: 'what it answered, or the status of its failure' }),
  error: t.Nullable(Failure),
  started: time,
  duration: t.Number({ description: 'ms' }),
  user: t.Nullable(id),
  logs: t.Array(LogLine),
})
export type LambdaRun = Static<typeof LambdaRun>
