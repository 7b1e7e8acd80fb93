import { type Static, t } from 'elysia'
import { Warning } from '../blueprints/shapes'
import { id, jsonObject, line, partialOf, strictObject, text, textMatching, time } from '../core/shapes'
import { appSettings } from '../platform/settings/app-settings'

const optional = t.Optional

export const RequiredProp = t.Union(
  [line(200, 1), strictObject({ prop: line(200, 1), type: line(200, 1) }, { 'x-name': 'with type' })],
  { description: 'a prop name, or its name and type' },
)
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
    { description: 'used in paths; letters, digits, dots, hyphens and underscores' },
  ),
  componentName: optional(line(200, 1)),
  description: optional(text(10_000)),
  content: t.String({
    minLength: 1,
    maxLength: 256 << 10,
    description: 'an ES module in TypeScript or JSX; the content of <style> becomes css',
  }),
  requiredProps: optional(t.Array(RequiredProp, { maxItems: 100 })),
})
export type NewComponent = Static<typeof NewComponent>

export const ComponentChange = partialOf(NewComponent)
export type ComponentChange = Static<typeof ComponentChange>

/** A component in a bulk request: it is changed when it exists, and created otherwise. */
export const ComponentDraft = t.Composite([ComponentChange, t.Pick(NewComponent, ['identifier'])])

export const ComponentBulk = t.Object({
  components: t.Array(t.Unknown(), { maxItems: 100, description: 'components to create or update' }),
})
export const ComponentBulkResult = t.Object({
  total: t.Number(),
  succeeded: t.Number(),
  failed: t.Number(),
  results: t.Array(
    t.Object({
      identifier: t.Nullable(t.String()),
      success: t.Boolean(),
      component: optional(Component),
      code: optional(t.String({ description: 'error code, as in the response to a single request' })),
      error: optional(t.String({ description: 'error message' })),
      details: optional(t.Unknown()),
    }),
  ),
})

export const StaticFiles = t.Object({
  identifier: t.String(),
  js: t.String({ description: 'path of the module' }),
  css: t.String({ description: 'path of the style sheet, which may be empty' }),
})

const contentType = t.Union([t.Literal('content'), t.Literal('html')], {
  description: 'html is sanitized before it is returned; content is returned unchanged',
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
  description: optional(text(10_000)),
  content: text(256 << 10),
  contentType: optional(contentType),
})
export type NewBlock = Static<typeof NewBlock>

export const BlockChange = partialOf(NewBlock)
export type BlockChange = Static<typeof BlockChange>

export const Configuration = t.Object({
  _id: id,
  key: t.String(),
  public: t.Boolean({ description: 'whether anyone can read the configuration' }),
  kind: t.String(),
  description: t.String(),
  metadata: jsonObject,
  warnings: optional(
    t.Array(Warning, { description: 'stored settings that are ignored because they are unknown or invalid' }),
  ),
  created: time,
  updated: time,
})
export type Configuration = Static<typeof Configuration>

export const NewConfiguration = strictObject({
  key: textMatching(
    '^[a-z][a-z0-9-]{0,62}$',
    'Begin the key with a lower-case letter, and use only lower-case letters, digits and - (63 characters at most).',
    { description: 'used in paths; lower-case letters, digits and hyphens' },
  ),
  public: optional(t.Boolean()),
  kind: optional(line(100)),
  description: optional(text(10_000)),
  metadata: optional(jsonObject),
})
export type NewConfiguration = Static<typeof NewConfiguration>

const { key: _, ...changeable } = NewConfiguration.properties
export const ConfigurationChange = partialOf(strictObject(changeable))
export type ConfigurationChange = Static<typeof ConfigurationChange>

/** The state of the host of one of the tenant's websites. */
export const WebsiteHost = t.Object({
  host: t.String(),
  state: t.Union([t.Literal('served'), t.Literal('unproven'), t.Literal('taken')], {
    description:
      'served: the tenant serves the host; unproven: ownership is not proven yet; taken: another tenant serves the host',
  }),
  message: optional(t.String({ description: 'how to resolve a host that is not served' })),
  record: optional(
    t.Object(
      { type: t.Literal('TXT'), name: t.String(), value: t.String() },
      { description: 'DNS record that proves ownership of the host' },
    ),
  ),
})
export type WebsiteHost = Static<typeof WebsiteHost>

/** The settings that everyone may read. */
export const AppConfiguration = t.Object({
  metadata: jsonObject,
  hosts: optional(t.Array(WebsiteHost, { description: 'hosts of websiteUrls; omitted if there are none' })),
})

const textOrNone = { type: ['string', 'null'] }
const textsOrNone = { type: ['array', 'null'], items: { type: 'string' } }
const settings = appSettings.shape.properties

/** Keys of the app configuration, at the top or under `metadata`. The server judges those that it reads. */
export const AppConfigurationChange = t.Unsafe<Record<string, unknown>>({
  ...t.Record(t.String(), t.Unknown()),
  'x-schema': {
    type: 'object',
    description: 'keys to change; null removes a key, and custom keys are stored unchanged',
    properties: {
      name: { ...textOrNone, description: "tenant name on the server's pages" },
      logo: { ...textOrNone, description: 'URL of the logo shown next to the name' },
      accentColor: { ...textOrNone, description: "accent colour of the server's pages, such as #7a3b8f" },
      websiteUrls: { ...textsOrNone, description: settings.websiteUrls.description },
      timezone: { ...textOrNone, description: settings.timezone.description },
      contentEditors: { ...textsOrNone, description: settings.contentEditors.description },
      metadata: { type: 'object', additionalProperties: true, description: 'alternative to top-level keys' },
    },
    additionalProperties: true,
  },
})
