import { type Static, t } from 'elysia'
import { change, free, id, line, part, text, textMatching, time } from '../core/shapes'

const maybe = t.Optional

const RequiredProp = t.Union([line(200, 1), part({ prop: line(200, 1), type: line(200, 1) })], {
  description: 'the name of a prop, or its name and type',
})
export type RequiredProp = Static<typeof RequiredProp>

export const Component = t.Object({
  _id: id,
  identifier: t.String(),
  componentName: t.String(),
  description: t.String(),
  content: t.String(),
  compiledContent: t.Object({ js: t.String(), css: t.String() }),
  requiredProps: t.Array(RequiredProp),
  created: time,
  updated: time,
})

export const NewComponent = t.Object({
  identifier: textMatching(
    '^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}$',
    'Begin the identifier with a letter or a digit, and use only letters, digits, ., _ and - (128 characters at most).',
    { description: 'names it in paths: letters, digits, dots, hyphens and underscores' },
  ),
  componentName: maybe(line(200, 1)),
  description: maybe(text(10_000)),
  content: t.String({
    minLength: 1,
    maxLength: 256 << 10,
    description: 'an ES module in TypeScript or JSX; what stands in <style> becomes css',
  }),
  requiredProps: maybe(t.Array(RequiredProp, { maxItems: 100 })),
})
export type NewComponent = Static<typeof NewComponent>

export const ComponentChange = change(NewComponent)
export type ComponentChange = Static<typeof ComponentChange>

/** One of several: what exists is changed, what does not is made. */
export const ComponentDraft = t.Composite([ComponentChange, t.Pick(NewComponent, ['identifier'])])

export const Bulk = t.Object({
  components: t.Array(t.Unknown(), { maxItems: 100, description: 'each like a new component, or a change of one' }),
})
export const BulkResult = t.Object({
  total: t.Number(),
  succeeded: t.Number(),
  failed: t.Number(),
  results: t.Array(
    t.Object({
      identifier: t.Nullable(t.String()),
      success: t.Boolean(),
      component: maybe(Component),
      code: maybe(t.String({ description: 'of what is wrong, as a request for one has it' })),
      error: maybe(t.String({ description: 'what is wrong with it, as a sentence' })),
      details: maybe(t.Unknown()),
    }),
  ),
})

export const StaticFiles = t.Object({
  identifier: t.String(),
  js: t.String({ description: 'the path of the module' }),
  css: t.String({ description: 'the path of the style sheet, which may be empty' }),
})

const contentType = t.Union([t.Literal('content'), t.Literal('html')], {
  description: 'html is shown without what could do harm; content as it is',
})

export const Block = t.Object({
  _id: id,
  name: t.String(),
  description: t.String(),
  content: t.String(),
  contentType,
  created: time,
  updated: time,
})

export const NewBlock = t.Object({
  name: line(200, 1),
  description: maybe(text(10_000)),
  content: text(256 << 10),
  contentType: maybe(contentType),
})
export type NewBlock = Static<typeof NewBlock>

export const BlockChange = change(NewBlock)
export type BlockChange = Static<typeof BlockChange>

export const Configuration = t.Object({
  _id: id,
  key: t.String(),
  public: t.Boolean({ description: 'whether anybody may read it' }),
  kind: t.String(),
  description: t.String(),
  metadata: free,
  created: time,
  updated: time,
})
export type Configuration = Static<typeof Configuration>

export const NewConfiguration = t.Object({
  key: textMatching(
    '^[a-z][a-z0-9-]{0,62}$',
    'Begin the key with a lower-case letter, and use only lower-case letters, digits and - (63 characters at most).',
    { description: 'names it in paths: small letters, digits and hyphens' },
  ),
  public: maybe(t.Boolean()),
  kind: maybe(line(100)),
  description: maybe(text(10_000)),
  metadata: maybe(free),
})
export type NewConfiguration = Static<typeof NewConfiguration>

export const ConfigurationChange = change(t.Omit(NewConfiguration, ['key']))
export type ConfigurationChange = Static<typeof ConfigurationChange>

/** Whether the tenant answers at the host of one of its websites. */
export const WebsiteHost = t.Object({
  host: t.String(),
  state: t.Union([t.Literal('served'), t.Literal('unproven'), t.Literal('taken')], {
    description: 'served: the tenant answers there; unproven: it does not yet; taken: another tenant does',
  }),
  message: maybe(t.String({ description: 'what to do about a host that is not served' })),
  record: maybe(
    t.Object(
      { type: t.Literal('TXT'), name: t.String(), value: t.String() },
      { description: 'the DNS record that proves ownership of the host' },
    ),
  ),
})
export type WebsiteHost = Static<typeof WebsiteHost>

/** The settings that are everybody's business. */
export const AppConfiguration = t.Object({
  metadata: free,
  hosts: maybe(t.Array(WebsiteHost, { description: 'the hosts of websiteUrls; left out when there are none' })),
})

/** Some of its keys, at the top or under `metadata`. */
export const AppConfigurationChange = t.Record(t.String(), t.Unknown())
