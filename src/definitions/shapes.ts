import { type Static, t } from 'elysia'
import { kindNames } from './kinds'

const maybe = t.Optional
const files = t.Record(t.String(), t.String(), {
  description: 'the text of each file by its path, such as `blueprints/books.json`',
})
const versionsBy = (description: string) => t.Record(t.String(), t.String(), { description })

export const Definitions = t.Object({ files, versions: versionsBy('the versions of definitions by their paths') })

export const DefinitionDiff = t.Object({
  files,
  versions: maybe(versionsBy('those last pulled or pushed: what has changed since is 412')),
  secrets: maybe(
    t.Record(t.String(), t.String(), { description: 'values of the placeholders in files, by their names' }),
  ),
  prune: maybe(t.Boolean({ description: 'remove what has no file' })),
})
export const DefinitionPush = t.Object({
  ...DefinitionDiff.properties,
  pruneData: maybe(t.Boolean({ description: 'with `prune`: also remove the entities of removed blueprints' })),
})

const actions = ['create', 'change', 'remove', 'rename'] as const
const oneOf = <Name extends string>(names: readonly Name[]) =>
  t.Unsafe<Name>(t.Union(names.map((name) => t.Literal(name))))

const Change = t.Object({
  action: oneOf(actions),
  kind: oneOf(kindNames),
  name: t.String(),
  details: maybe(t.Array(t.String())),
  entities: maybe(t.Number({ description: 'how many entities the blueprint has' })),
})

export const DefinitionDiffResult = t.Object({
  changes: t.Array(Change),
  missingSecrets: t.Array(t.String(), { description: 'placeholders that need a value for a push' }),
  keptSecrets: t.Array(t.String(), {
    description: 'placeholders whose values the tenant has; a push may replace them',
  }),
})
export const DefinitionPushResult = t.Object({
  changes: t.Array(Change, { description: 'the changes that were made' }),
  versions: t.Record(t.String(), t.Nullable(t.String()), {
    description: 'the versions of what is now as the files say; null for what is gone',
  }),
  remaining: t.Number({ description: 'how many changes are left; send the same request again to make them' }),
})
export type DefinitionPushResult = Static<typeof DefinitionPushResult>
