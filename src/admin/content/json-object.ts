import { ApiProblem } from '../api/problem'

/** Returns the object of a `JsonInput`. @throws ApiProblem at the field when it is not one */
export function requireJsonObject(value: unknown, key: string): Record<string, unknown> {
  if (value && typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  const message = 'Write a JSON object, such as {"monday": "9-17"}.'
  throw new ApiProblem(400, 'JSON', message, [{ path: `/${key}`, message }], null)
}
