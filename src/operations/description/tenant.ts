import { asc } from 'drizzle-orm'
import { type Ctx, type OpenCtx, readmit } from '../../accounts/guard'
import { applies, mayRead, mayWrite } from '../../blueprints/rules'
import type { Definition, Field, Operation } from '../../blueprints/shapes'
import { blueprints } from '../../blueprints/tables'
import { namesFor } from '../../blueprints/types/names'
import { Problem } from '../../core/problem'
import { json, parameter } from '../../entities/routes'
import { EntityDeleted } from '../../entities/shapes'
import { standsFor } from '../../tenancy/caller'
import { type Document, describe } from './document'
import { schemaOfField } from './fields'
import type { Route } from './operation'
import type { Schema } from './schema'

const AT_ONCE = 20 // blueprints, until others get their turn

/**
 * The description with what a tenant's blueprints add to it: a schema and paths for each, with the operations and the fields
 * that are there for the caller. @throws 401 for guests, and what admission throws
 */
export async function describeTenant(base: Document, request: Request, id: string): Promise<Document> {
  const ctx = await admitted(request, id)
  const rows = await ctx.db.select().from(blueprints).orderBy(asc(blueprints.key))
  const names = namesFor(
    rows.map(({ key }) => key),
    Object.keys(base.components.schemas).join(' '),
  )
  const schemas: Record<string, Schema> = {}
  const routes: Route[] = []
  for (const [index, { key, name, definition }] of rows.entries()) {
    const entity = names.get(key)?.entity ?? key
    const described = blueprintOf(ctx, { key, name, definition }, entity)
    if (described.routes.length) Object.assign(schemas, described.schemas)
    routes.push(...described.routes)
    if (index % AT_ONCE === AT_ONCE - 1) await new Promise(setImmediate)
  }
  return together(base, describe(routes), schemas)
}

/** The caller at the tenant that the address names. */
async function admitted(request: Request, id: string): Promise<Ctx> {
  const headers = new Headers(request.headers)
  headers.set('tenant', id)
  const asked = new Request(request.url, { headers })
  standsFor(asked, request)
  const ctx = await readmit(asked, 'blueprints')
  if (isSignedIn(ctx)) return ctx
  throw new Problem(401, 'UNAUTHENTICATED', 'Sign in to see the description of a tenant’s blueprints.')
}

const isSignedIn = (ctx: OpenCtx): ctx is Ctx => ctx.actor !== undefined

function together(base: Document, added: Document, schemas: Record<string, Schema>): Document {
  const components: Document['components'] = { ...base.components, schemas: {} }
  for (const kind of ['responses', 'parameters', 'securitySchemes'])
    components[kind] = { ...added.components[kind], ...base.components[kind] }
  components.schemas = { ...base.components.schemas, ...added.components.schemas, ...schemas }
  return { ...base, paths: { ...base.paths, ...added.paths }, components }
}

type Described = { key: string; name: string; definition: Definition }

/** The schemas of a blueprint, and the routes of its entities as if they were written down for it alone. */
function blueprintOf({ actor }: Ctx, { key, name, definition }: Described, entity: string) {
  const { fields, computed = {}, permissions = [] } = definition
  const may = (operation: Operation) =>
    actor.privileged || permissions.some((rule) => rule.operation === operation && applies(rule, actor))
  const shown = fields.filter((field) => mayRead(field, actor))
  const written = fields.filter((field) => mayWrite(field, actor) && !Object.hasOwn(computed, field.key))
  const ref = (schema: string) => ({ $ref: `#/components/schemas/${schema}` })
  const schemas = {
    [entity]: entitySchema(name, shown, ref(`${entity}Properties`)),
    [`${entity}Properties`]: object(shown, ({ required }) => !!required),
    [`New${entity}`]: inputSchema(written, ({ required, default: value }) => !!required && (value ?? null) === null),
    [`${entity}Change`]: inputSchema(written, () => false),
  }
  const detail = (operationId: string, summary: string, access = 'anyone') => ({
    ...{ 'x-access': access, operationId, summary, tags: ['entities'] },
  })
  const found = { 200: json(ref(entity), 'The entity') }
  const changed = { ...found, 409: json({}, ''), 412: json({}, '') }
  const [all, one] = [`/api/blueprints/${key}/entities`, `/api/blueprints/${key}/entities/:identifier`]
  const change = { requestBody: json(ref(`${entity}Change`), 'The properties to change'), responses: changed }
  const routes: [Operation, Route][] = [
    [
      'read',
      route('GET', all, {
        ...detail(`list${entity}Entities`, `List entities of ${name}`),
        ...list(shown, ref(entity)),
      }),
    ],
    ['read', route('GET', one, { ...detail(`get${entity}Entity`, `Get an entity of ${name}`), responses: found })],
    [
      'create',
      route('POST', all, {
        ...detail(`create${entity}Entity`, `Create an entity of ${name}`),
        requestBody: json(ref(`New${entity}`), 'The properties'),
        responses: { 201: json(ref(entity), 'The new entity') },
      }),
    ],
    ['update', route('PUT', one, { ...detail(`update${entity}Entity`, `Update an entity of ${name}`), ...change })],
    ['update', route('PATCH', one, { ...detail(`patch${entity}Entity`, `Update an entity of ${name}`), ...change })],
    [
      'delete',
      route('DELETE', one, {
        ...detail(`delete${entity}Entity`, `Delete an entity of ${name}`),
        responses: { 200: json(EntityDeleted, 'OK'), 409: json({}, ''), 412: json({}, '') },
      }),
    ],
  ]
  return { schemas, routes: routes.flatMap(([operation, route]) => (may(operation) ? [route] : [])) }
}

const route = (method: string, path: string, detail: Route['hooks']['detail']): Route => ({
  method,
  path,
  hooks: { detail },
})

function list(fields: Field[], entity: Schema) {
  const simple = fields.filter(({ type, multi }) => type !== 'object' && !multi)
  const sortable = simple.map(({ key }) => key).join('|')
  const sort = `^[+-]?(${sortable}|_id|identifier|created|updated)(,[+-]?(${sortable}|_id|identifier|created|updated))*$`
  return {
    description:
      'Filters: `field=value`, or `field[$gt]=value` with `$lt`, `$gt`, `$lte`, `$gte`, `$ne`, `$in`, `$nin`, `$exists` or `$like`.',
    parameters: [
      ...simple.map((field) => {
        const { default: _, description, title, ...schema } = schemaOfField(field)
        return {
          name: field.key,
          in: 'query',
          required: false,
          description: `${title ?? `only this \`${field.key}\``}`,
          schema,
        }
      }),
      parameter(['$limit', 'integer', 'how many; at most 1000 are answered', { minimum: 0, default: 100 }]),
      parameter(['$page', 'integer', 'the page of $limit entities, from 1', { minimum: 0, default: 1 }]),
      parameter(['$sort', 'string', 'fields to sort by; "-" before one for descending', { pattern: sort }]),
      parameter(['$count', 'boolean', 'adds the header X-Total-Count']),
      parameter(['$q', 'string', 'words that must be in the entity']),
      parameter(['$after', 'string', 'the cursor of the `Link` to the next page']),
    ],
    responses: { 200: json({ type: 'array', items: entity }, 'The entities') },
  }
}

const system = { _id: 'string', identifier: 'string', created: 'date-time', updated: 'date-time' }

const entitySchema = (title: string, fields: Field[], properties: Schema): Schema => {
  const { required, properties: own } = object(fields, (field) => !!field.required)
  return {
    ...{ title, type: 'object' },
    required: [...Object.keys(system), 'user', 'workspace', 'metadata', ...(required as string[])],
    properties: {
      ...Object.fromEntries(
        Object.entries(system).map(([key, format]) => [
          key,
          { type: 'string', ...(format !== 'string' && { format }) },
        ]),
      ),
      user: { type: ['string', 'null'] },
      workspace: { type: ['string', 'null'] },
      metadata: properties,
      ...(own as Schema),
    },
  }
}

const object = (fields: Field[], isRequired: (field: Field) => boolean): Schema => ({
  type: 'object',
  required: fields.filter(isRequired).map(({ key }) => key),
  properties: Object.fromEntries(fields.map((field) => [field.key, schemaOfField(field)])),
})

/** What is not required may be taken away by null. */
function inputSchema(fields: Field[], isRequired: (field: Field) => boolean): Schema {
  const { properties, ...rest } = object(fields, isRequired)
  const own = Object.fromEntries(
    fields.map((field) => {
      const schema = (properties as Record<string, Schema>)[field.key] ?? {}
      return [field.key, field.required ? schema : orNull(schema)]
    }),
  )
  const identifier = { type: ['string', 'null'], description: 'made by the server where there is none' }
  return { ...rest, properties: { identifier, ...own } }
}

const orNull = ({ type, enum: choices, ...schema }: Schema): Schema => ({
  ...schema,
  ...(type !== undefined && { type: [...[type].flat(), 'null'] }),
  ...(Array.isArray(choices) && { enum: [...choices, null] }),
})
