import { fieldTypes } from '../../blueprints/fields'
import { toSample } from '../../blueprints/sample-entity'
import type { Field } from '../../blueprints/shapes'
import { asOfParameter, countParameter, toParameter } from '../../entities/parameters'
import { jsonWithExample } from './entity-examples'
import type { DescribedField } from './entity-schemas'
import { foldName } from './part-names'
import type { Schema } from './schema'

/** Returns what the description says of a list of entities: a filter for each field, the options, and the answer. */
export function listOperation(fields: DescribedField[], entity: Schema, hasHistory: boolean, example: unknown) {
  const simple = fields.filter(({ type, multi }) => fieldTypes[type].toIndexKey && !multi)
  const options = listOptions(simple, hasHistory)
  const namesInUse = new Set(options.map(({ name }) => foldName(name)))
  // A filter whose name would be another parameter's in generated code is only in the words.
  const filters = simple.filter(({ key }) => !namesInUse.has(foldName(key)) && namesInUse.add(foldName(key)))
  return {
    description:
      'Filters: `field=value`, or `field[$gt]=value` with `$lt`, `$gt`, `$lte`, `$gte`, `$ne`, `$in`, `$nin`, `$exists` or `$like`.',
    parameters: [
      ...filters.map((field) => {
        const { default: _, description, title, ...schema } = field.described
        return {
          name: field.key,
          in: 'query',
          required: false,
          description: `${title ?? `only this \`${field.key}\``}`,
          schema,
          example: toSample(field),
        }
      }),
      ...options,
    ],
    responses: { 200: jsonWithExample({ type: 'array', items: entity }, 'A page of entities', example && [example]) },
  }
}

function listOptions(simple: Field[], hasHistory: boolean) {
  const sortable = simple.map(({ key }) => key).join('|')
  const sort = `^[+-]?(${sortable}|_id|identifier|created|updated)(,[+-]?(${sortable}|_id|identifier|created|updated))*$`
  return [
    toParameter([
      '$limit',
      'integer',
      'maximum number of entities to return; at most 1000',
      { minimum: 0, default: 100 },
    ]),
    toParameter(['$page', 'integer', 'page number, starting at 1', { minimum: 0, default: 1 }]),
    toParameter([
      '$sort',
      'string',
      'fields to sort by; prefix a field with "-" for descending order',
      { pattern: sort },
    ]),
    toParameter(countParameter),
    toParameter(['$q', 'string', 'words that entities must contain']),
    ...(hasHistory ? [toParameter(asOfParameter)] : []),
    toParameter(['$after', 'string', 'cursor from the `Link` to the next page']),
  ]
}
