import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020'
import { app } from '../../src/app'
import { buildOpenApi as describeRoutes } from '../../src/operations/openapi/document'
import type { TestResponse } from '../test-tenant'

type Content = Record<string, { schema?: object }>
type Operation = { responses: Record<string, { $ref?: string; content?: Content }> }

/** The description of the API. */
export const document = describeRoutes(app.routes)
const paths = document.paths as Record<string, Record<string, Operation>>
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ $id: 'api', ...document })
const validators = new Map<string, ValidateFunction>()

const pathOf = (path: string) => path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')
const pointer = (text: string) => text.replaceAll('~', '~0').replaceAll('/', '~1')

/** Explains how an answer differs from the OpenAPI document, or returns an empty text. */
export function findMismatch(method: string, path: string, { status, headers, body }: TestResponse): string {
  const operation = paths[pathOf(path)]?.[method.toLowerCase()]
  const key = operation && `${status}` in operation.responses ? `${status}` : 'default'
  const response = operation?.responses[key]
  if (!response) return `${status} is not described`
  if (key === 'default' && status < 500) return `${status} ${JSON.stringify(body)} is only described as any other error`
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  const at = response.$ref ?? `#/paths/${pointer(pathOf(path))}/${method.toLowerCase()}/responses/${key}`
  const content = response.$ref ? { 'application/json': {} } : response.content
  if (!content || body === undefined) return ''
  if (!(type in content) && !('*/*' in content)) return `${status} is ${type}, but described as ${Object.keys(content)}`
  if (type !== 'application/json') return ''
  const ref = `api${at}/content/${pointer(type)}/schema`
  const validate = validators.get(ref) ?? ajv.compile({ $ref: ref })
  validators.set(ref, validate)
  return validate(body) ? '' : `${status}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body).slice(0, 500)}`
}
