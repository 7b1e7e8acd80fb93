type Schema = { [word: string]: unknown }
type Parameter = { name?: string; in?: string; schema?: Schema; $ref?: string }
type Operation = { operationId: string; parameters?: Parameter[]; requestBody?: object; responses: object }
export type DescribedApi = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; [kind: string]: object }
}

const isSchema = (value: unknown): value is Schema => !!value && typeof value === 'object' && !Array.isArray(value)

/** What generators make of a name: Go and Python know no signs, and file systems no case. */
export const fold = (name: string) => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase()

const duplicatesOf = (names: string[]) => names.filter((name, index) => names.map(fold).indexOf(fold(name)) !== index)

/** Content types that every generator reads and writes. */
const KNOWN_BODIES = ['application/json', 'application/octet-stream', 'multipart/form-data']
const isKnownAnswer = (type: string) => /^text\/|^application\/(octet-stream|json|problem\+json)$/.test(type)

/** What oapi-codegen calls an operation's own types. */
const OPERATION_TYPES = ['Response', 'Params', 'JSONBody', 'JSONRequestBody', 'Request', 'RequestWithBody']

/** Lists where a description breaks a rule that a client generator needs. */
export function listBrokenRules({ paths, components }: DescribedApi): string[] {
  const broken: string[] = []
  const report = (at: string, rule: string) => void broken.push(`${at}: ${rule}`)

  function checkSchema(schema: unknown, at: string, isNamed: boolean): void {
    if (!isSchema(schema)) return
    const { type, enum: choices, anyOf, oneOf, properties, items, additionalProperties } = schema
    if (Array.isArray(type) && (type.length !== 2 || type[1] !== 'null')) report(at, `a list of types: ${type}`)
    if (Array.isArray(choices)) {
      if (new Set(choices.map((value) => typeof value)).size > 1) report(at, 'an enum of several types')
      if (choices.includes(null)) report(at, 'an enum with null')
      const named = (schema['x-enum-varnames'] ?? choices.map(String)) as string[]
      if (duplicatesOf(named).length) report(at, `choices with one name: ${duplicatesOf(named)}`)
    }
    const alternatives = (anyOf ?? oneOf ?? []) as Schema[]
    const others = alternatives.filter((one) => one.type !== 'null')
    if (!isNamed && others.length > 1) report(at, 'a union without a name')
    if (!isNamed && properties && Object.keys(properties).length) report(at, 'an object without a name')
    for (const [index, one] of alternatives.entries()) {
      if (one.properties) report(at, `alternative ${index} has no name`)
      checkSchema(one, `${at}|${index}`, false)
    }
    const goNames = Object.entries((properties ?? {}) as Record<string, Schema>).map(
      ([key, property]) => (property['x-go-name'] as string) ?? key,
    )
    if (duplicatesOf(goNames).length) report(at, `properties with one name: ${duplicatesOf(goNames)}`)
    for (const [key, part] of Object.entries((properties ?? {}) as object)) checkSchema(part, `${at}.${key}`, false)
    for (const part of [items, additionalProperties]) checkSchema(part, `${at}[]`, false)
  }

  const schemes = (components.securitySchemes ?? {}) as Record<string, { name?: string }>
  for (const [scheme, { name }] of Object.entries(schemes))
    if (name && !/^[\w.-]+$/.test(name)) report(scheme, `no name of a header or cookie: ${name}`)

  /** Generators name what stands in a property after the schema and the property. */
  function listImpliedNames(name: string, { properties = {} }: Schema): string[] {
    return Object.entries(properties as Record<string, Schema>).flatMap(([key, part]) => {
      const own = isSchema(part.items) ? part.items : part
      return own.$ref || !(own.enum || [own.type].flat().includes('object')) ? [] : [`${name}${key}`]
    })
  }

  const names = Object.keys(components.schemas)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ at: `${method.toUpperCase()} ${path}`, operation })),
  )
  for (const name of duplicatesOf(names)) report(name, 'two schemas with one name')
  const implied = Object.entries(components.schemas).flatMap(([name, schema]) => listImpliedNames(name, schema))
  const ofOperations = operations.flatMap(({ operation }) =>
    OPERATION_TYPES.map((suffix) => `${operation.operationId}${suffix}`),
  )
  const taken = new Set([...implied, ...ofOperations].map(fold))
  for (const name of names) if (taken.has(fold(name))) report(name, 'generators give this name to a part')
  for (const name of duplicatesOf(operations.map(({ operation }) => operation.operationId)))
    report(name, 'two operations with one name')
  for (const [name, schema] of Object.entries(components.schemas)) {
    if ('title' in schema) report(name, 'some generators name a schema by its title')
    checkSchema(schema, name, true)
  }
  for (const { at, operation } of operations) {
    const parameters = operation.parameters?.filter((one) => one.name) ?? []
    for (const name of duplicatesOf(parameters.map((one) => one.name ?? ''))) report(at, `two parameters named ${name}`)
    for (const { name, schema } of parameters) checkSchema(schema, `${at} ?${name}`, false)
    const { content = {} } = (operation.requestBody ?? {}) as { content?: Record<string, { schema?: Schema }> }
    for (const [type, { schema }] of Object.entries(content)) {
      if (!KNOWN_BODIES.includes(type)) report(at, `a body of ${type}`)
      checkSchema(schema, `${at} body`, type === 'multipart/form-data')
    }
    for (const [status, response] of Object.entries(operation.responses)) {
      const answers = Object.entries((response.content ?? {}) as Record<string, { schema?: Schema }>)
      if (answers.length && !answers.some(([type]) => isKnownAnswer(type)))
        report(at, `${status} of ${answers[0]?.[0]}`)
      for (const [, { schema }] of answers) checkSchema(schema, `${at} ${status}`, false)
    }
  }
  return broken
}
