// engine: sqlite
import { beforeAll, describe, expect, test } from 'bun:test'
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020'
import { app } from '../../src/app'
import { buildOpenApi as describeRoutes } from '../../src/operations/openapi/document'
import { examples } from '../../src/operations/openapi/examples'
import { toJsonSchema } from '../../src/operations/openapi/schema'
import { namedShapes } from '../../src/operations/openapi/schema-names'

type Schema = { [word: string]: unknown }
type Media = Record<string, { schema?: Schema; example?: unknown }>
type Operation = {
  operationId: string
  summary: string
  description: string
  parameters?: {
    name: string
    in: string
    schema: Schema
    required: boolean
    description?: string
    example?: unknown
    $ref?: string
  }[]
  requestBody?: { required: boolean; content: Media }
  responses: Record<string, { $ref?: string; description?: string; content?: Media }>
}

const document = describeRoutes(app.routes)
const routes = app.routes.filter(({ hooks }) => !hooks.detail?.hide)
const paths = document.paths as Record<string, Record<string, Operation>>
const operationFor = (method: string, path: string): Operation =>
  paths[path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()] as Operation
const schemaNamed = (name: string) =>
  document.components.schemas[name] as { properties: Record<string, Schema>; required: string[] }
const queryParameter = (path: string, name: string) =>
  operationFor('GET', path).parameters?.find((one) => one.in === 'query' && one.name === name)

let ajv: Ajv2020
beforeAll(() => {
  ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'api', components: { schemas: document.components.schemas } })
})
const schemaErrors = (name: string, value: unknown) => {
  const validate = ajv.getSchema(`api#/components/schemas/${name}`)
  return validate?.(value) ? '' : ajv.errorsText(validate?.errors ?? [{ message: 'no schema' } as never])
}

describe('operations of the OpenAPI document', () => {
  test.each(routes.map(({ method, path, hooks }) => [`${method} ${path}`, method, path, hooks] as const))(
    '%s has an operationId, a summary, a description, its body and its errors',
    (_, method, path, hooks) => {
      const operation = operationFor(method, path)
      expect(operation.operationId).toMatch(/^[a-z][A-Za-z0-9]+$/)
      expect(operation.summary).toMatch(/^[A-Z][^.]{4,70}$/)
      expect(operation.description).toMatch(/\.$/)
      const body = operation.requestBody
      if (hooks.body) expect(Object.keys(body?.content ?? {}), 'the body has a type').not.toBeEmpty()
      for (const { schema } of Object.values(body?.content ?? {})) expect(schema, 'the body has a schema').toBeObject()
      const statuses = Object.keys(operation.responses)
      expect(statuses, 'errors that any route can answer').toContainValues(['400', 'default'])
      if (path.startsWith('/api/')) expect(statuses).toContainValues(['403', '404', '503'])
      if (hooks.detail?.['x-access'] !== 'open') expect(statuses).toContain('401')
      if (body) expect(statuses).toContain('413')
      if (body?.content['application/json']) expect(statuses).toContain('415')
    },
  )

  test('every operation has a unique operationId', () => {
    const ids = routes.map(({ method, path }) => operationFor(method, path).operationId)
    expect(ids).toEqual([...new Set(ids)])
  })
})

describe('schemas of the OpenAPI document', () => {
  test('no two different shapes have the same schema name', () => {
    const textByName = new Map<string, string>()
    for (const [name, shape] of namedShapes) {
      const text = JSON.stringify(toJsonSchema(shape))
      expect(textByName.get(name) ?? text, `${name} is the name of two shapes: give one another in names.ts`).toBe(text)
      textByName.set(name, text)
    }
  })

  test('common things have named schemas, and no body with properties is described inline', () => {
    for (const name of [
      'User',
      'Workspace',
      'Blueprint',
      'Entity',
      'Plan',
      'Problem',
      'Integration',
      'Lambda',
      'Event',
    ])
      expect(schemaNamed(name).properties, name).toBeObject()
    const inline = routes.flatMap(({ method, path }) => {
      const content = operationFor(method, path).requestBody?.content['application/json']
      return content?.schema && Object.keys((content.schema.properties ?? {}) as object).length
        ? [`${method} ${path}`]
        : []
    })
    expect(inline).toEqual([])
  })

  test('nullable schemas list null as a type and never use the keyword nullable', () => {
    expect(JSON.stringify(document)).not.toContain('"nullable"')
    expect(schemaNamed('User').properties.phone).toEqual({ type: ['string', 'null'] })
  })

  test('the document is unchanged after routes have been used', async () => {
    await app.fetch(new Request('http://nowhere.test/api/blueprints', { method: 'POST', body: '{}' }))
    expect(describeRoutes(app.routes)).toEqual(document)
  })

  test('the schemas of bodies require what the server requires', () => {
    expect(schemaNamed('NewCoupon').required).toEqual(['code', 'discountType', 'discountValue'])
    expect(schemaErrors('SignIn', {})).not.toBe('')
    expect(schemaErrors('SignIn', { username: 'ada' })).not.toBe('')
    expect(schemaErrors('SignIn', { challenge: 'x', code: '1' })).toBe('')
    expect(schemaErrors('NewCheckout', { planId: 'x' })).not.toBe('')
    expect(schemaErrors('NewPlan', { name: 'x' })).not.toBe('')
    expect(schemaErrors('PlanChange', {})).toBe('')
    expect(schemaErrors('DynamicAmount', {})).not.toBe('')
    expect(schemaErrors('NewPlugin', {})).not.toBe('')
    expect(schemaErrors('PluginChange', {})).toBe('')
  })
})

test('the body that changes the app configuration describes each key that the server reads', () => {
  const { properties } = schemaNamed('AppConfigurationChange')
  for (const key of ['name', 'logo', 'accentColor', 'websiteUrls', 'timezone', 'contentEditors', 'metadata'])
    expect(properties[key]?.description, key).toBeString()
})

describe('parameters of the OpenAPI document', () => {
  test('choices whose names are given have one for each', () => {
    const counts = [...JSON.stringify(document).matchAll(/"enum":(\[[^\]]*\]),"x-enum-varnames":(\[[^\]]*\])/g)].map(
      ([, values = '', names = '']) => [JSON.parse(values).length, JSON.parse(names).length],
    )
    expect(counts.length).toBeGreaterThan(5)
    for (const [values, names] of counts) expect(names).toBe(values)
  })

  test('query parameters have the types, words and patterns that the server accepts', () => {
    const types = ['limit', 'page', 'count', 'sort', 'isActive'].map(
      (name) => queryParameter('/api/plans/', name)?.schema.type,
    )
    expect(types).toEqual(['integer', 'integer', 'boolean', 'string', 'boolean'])
    expect(queryParameter('/api/events/', 'period')?.schema.enum).toContain('last-week')
    expect(queryParameter('/api/blocks/', 'contentType')?.schema.enum).toEqual(['content', 'html'])
    const sorted = new RegExp(`${queryParameter('/api/plans/', 'sort')?.schema.pattern}`)
    expect(['-created', '_id, -name', '', 'a,,b'].map((text) => sorted.test(text))).toEqual([true, true, false, false])
  })

  test('query parameters are required where the server requires them', () => {
    expect(queryParameter('/api/blueprints/:key/charts/pie', 'x')?.required).toBeTrue()
    expect(queryParameter('/api/blueprints/:key/charts/sum', 'sum')?.required).toBeTrue()
    expect(queryParameter('/api/events/sum', 'sum')?.required).toBeTrue()
    expect(queryParameter('/api/ai/agents/:id/chat', 'messages')?.required).toBeTrue()
    const confirm = operationFor('DELETE', '/api/blueprints/:key/entities/all').parameters?.find(
      (one) => one.name === 'confirm',
    )
    expect(confirm?.required).toBeTrue()
  })

  test('operations list exactly the headers that apply to them', () => {
    const headers = (method: string, path: string) =>
      operationFor(method, path).parameters?.flatMap(({ $ref }) => $ref?.split('/').at(-1) ?? []) ?? []
    expect(headers('POST', '/api/blueprints/')).toEqual([
      'IdempotencyKey',
      'ImpersonateUser',
      'ImpersonateWorkspace',
      'AcceptVersion',
    ])
    expect(headers('PUT', '/api/blueprints/:key')).toContain('IfMatch')
    expect(headers('DELETE', '/api/blueprints/:key/entities/:identifier')).toContain('IfMatch')
    expect(headers('GET', '/api/plans/')).not.toContain('IfMatch')
    expect(headers('POST', '/api/signin')).not.toContain('ImpersonateUser')
  })
})

const STATUS_TEXTS = ['', 'OK', 'Created', 'Accepted', 'No Content', 'Found', 'Redirect', 'Success']

/** The bodies and successful responses of an operation that have a schema. */
function mediaOf(method: string, path: string) {
  const { requestBody, responses } = operationFor(method, path)
  const parts = [['body', requestBody] as const, ...Object.entries(responses).filter(([status]) => status < '400')]
  return parts.flatMap(([part, described]) =>
    Object.entries(described?.content ?? {}).flatMap(([type, { schema, example }]) =>
      schema ? [{ at: `${method} ${path} ${part} ${type}`, type, schema, example }] : [],
    ),
  )
}

describe('examples of the OpenAPI document', () => {
  test('every example is used', () => {
    const text = JSON.stringify(document.paths)
    expect(Object.keys(examples).filter((name) => !text.includes(JSON.stringify(examples[name])))).toEqual([])
  })

  test('every example matches its schema', () => {
    const validators = new Map<string, ValidateFunction>()
    const explain = (schema: Schema = {}, example?: unknown) => {
      const text = JSON.stringify(schema).replaceAll('"#/', '"api#/')
      const validate = validators.get(text) ?? ajv.compile(JSON.parse(text))
      validators.set(text, validate)
      return example === undefined || validate(example) ? '' : ajv.errorsText(validate.errors)
    }
    const wrong = routes.flatMap(({ method, path }) => [
      ...mediaOf(method, path).map(({ at, schema, example }) => [at, explain(schema, example)]),
      ...(operationFor(method, path).parameters ?? []).map(({ name, schema, example }) => [
        `${method} ${path} ${name}`,
        explain(schema, example),
      ]),
    ])
    expect(wrong.filter(([, error]) => error)).toEqual([])
  })

  test('every parameter has a description and an example', () => {
    const without = routes.flatMap(({ method, path }) =>
      (operationFor(method, path).parameters ?? []).flatMap(({ name, description, example }) =>
        name && !(description && example !== undefined) ? [`${method} ${path} ${name}`] : [],
      ),
    )
    expect(without).toEqual([])
  })

  test('every body and every response in JSON has an example', () => {
    const without = routes.flatMap(({ method, path }) =>
      mediaOf(method, path).flatMap(({ at, type, example }) =>
        type === 'application/json' && example === undefined ? [at] : [],
      ),
    )
    expect(without).toEqual([])
  })

  test('every successful response says what is returned, in other words than its status and its summary', () => {
    const bare = routes.flatMap(({ method, path }) => {
      const { summary, responses } = operationFor(method, path)
      return Object.entries(responses).flatMap(([status, { description = '' }]) =>
        status < '400' && (!/^[A-Z].{5,}/.test(description) || [...STATUS_TEXTS, summary].includes(description))
          ? [`${method} ${path} ${status}: say it in response-descriptions.ts`]
          : [],
      )
    })
    expect(bare).toEqual([])
  })
})
