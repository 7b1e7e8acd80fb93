import type { Blueprint, Entity, Rule } from '../api/schema'
import type { ApiRequest } from '../ui/api-button'
import { toSampleEntity } from './sample-entity'

/** What programs do with the entities of a blueprint, as a request and in TypeScript. */
export type EntityExample = {
  title: string
  operation: Rule['operation']
  request: ApiRequest
  /** The same with the generated client. */
  client?: string
  /** Whether the answer goes on for ever. */
  isStream?: boolean
}

const EXAMPLE_IDENTIFIER = 'example'

/** Returns the parameters of a chart that a blueprint's fields make sense of. */
function toChartQuery({ fields }: Blueprint): Record<string, string> {
  const group =
    fields.find(({ enum: choices, multi }) => choices && !multi) ?? fields.find(({ type }) => type === 'boolean')
  return group ? { x: group.key } : { x: 'created', interval: 'month' }
}

/** Returns ready requests for the entities of a blueprint. What changes something only concerns the example itself. */
export function listExamples(blueprint: Blueprint, other: Entity | undefined): EntityExample[] {
  const base = `/api/blueprints/${blueprint.key}`
  const sample = toSampleEntity(blueprint, other)
  const [changedKey, changedValue] = Object.entries(sample)[0] ?? []
  const change = changedKey ? { [changedKey]: changedValue } : {}
  const one = `${base}/entities/${EXAMPLE_IDENTIFIER}`
  const write = (value: unknown) => JSON.stringify(value)
  const exampleEntity = { identifier: EXAMPLE_IDENTIFIER, ...sample }
  return [
    {
      ...{ title: 'List', operation: 'read' as const },
      request: { method: 'GET', path: `${base}/entities`, query: { $sort: '-created', $limit: '10' } },
      client: `const page = await entities.list({ $sort: '-created', $limit: 10 })`,
    },
    {
      ...{ title: 'Get one', operation: 'read' as const },
      request: {
        method: 'GET',
        path: `${base}/entities/${encodeURIComponent(other?.identifier ?? EXAMPLE_IDENTIFIER)}`,
      },
      client: `const one = await entities.get(${write(other?.identifier ?? EXAMPLE_IDENTIFIER)})`,
    },
    {
      ...{ title: 'Create', operation: 'create' as const },
      request: { method: 'POST', path: `${base}/entities`, body: exampleEntity },
      client: `const created = await entities.create(${write(exampleEntity)})`,
    },
    {
      ...{ title: 'Change', operation: 'update' as const },
      request: { method: 'PUT', path: one, body: change },
      client: `const changed = await entities.change('${EXAMPLE_IDENTIFIER}', ${write(change)})`,
    },
    {
      ...{ title: 'Delete', operation: 'delete' as const },
      request: { method: 'DELETE', path: one },
      client: `await entities.remove('${EXAMPLE_IDENTIFIER}')`,
    },
    {
      ...{ title: 'Count', operation: 'read' as const },
      request: { method: 'GET', path: `${base}/charts/count` },
      client: 'const count = await entities.count()',
    },
    {
      ...{ title: 'Chart', operation: 'read' as const },
      request: { method: 'GET', path: `${base}/charts/bar`, query: toChartQuery(blueprint) },
    },
    {
      ...{ title: 'Follow changes', operation: 'read' as const, isStream: true },
      request: { method: 'GET', path: `${base}/entities/changes` },
    },
  ]
}
