import { toSample, toSampleEntity } from '../../blueprints/sample-entity'
import type { Field } from '../../blueprints/shapes'
import { jsonContent } from '../../entities/parameters'
import { id, times } from './examples/stand-ins'

/** Examples of an entity: what is sent to create or to change it, and what comes back. */
export type EntityExamples = { input?: object; change?: object; entity?: object }

/** Returns the examples of a blueprint, as far as the caller may write and read its fields. */
export function toEntityExamples(writable: Field[], readable: Field[]): EntityExamples {
  const input = toSampleEntity(writable)
  if (!input) return {}
  const [changed] = Object.entries(input)
  const properties = Object.fromEntries(
    readable.flatMap((field) => {
      const value = input[field.key] ?? (field.required ? toSample(field) : undefined)
      return value === undefined ? [] : [[field.key, value]]
    }),
  )
  const entity = { _id: id, identifier: id, ...times, user: id, workspace: null, metadata: properties, ...properties }
  return { input, change: changed ? { [changed[0]]: changed[1] } : {}, entity }
}

/** Returns a body or response in JSON, with an example if there is one. */
export function jsonWithExample(schema: object, description: string, example: unknown) {
  const { content } = jsonContent(schema, description)
  const media = { ...content['application/json'], ...(example !== undefined && { example }) }
  return { description, content: { 'application/json': media } }
}
