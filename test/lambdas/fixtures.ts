import { type ApiClient, type createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'

export type LambdaTestTenant = Awaited<ReturnType<typeof createTestTenant>>

/** Returns the code of a lambda whose default export is this function. */
export const toModule = (body: string) => `export default ${body}`

/** Creates a lambda from the text of its function, and returns its path. */
export async function createLambda(admin: ApiClient, body: string, more: object = {}): Promise<string> {
  const { status, body: lambda } = await admin.post('/lambdas', { name: 'test', code: toModule(body), ...more })
  if (status !== 201) throw new Error(JSON.stringify(lambda))
  return `/lambdas/${lambda._id}`
}

/** Creates and runs a lambda; returns its result, or `[code, message]` of its failure. */
export async function runOnce(admin: ApiClient, body: string, input: object = {}, more: object = {}) {
  return toResult(await admin.post(`${await createLambda(admin, body, more)}/execute`, input))
}

export function toResult(answer: TestResponse) {
  if (answer.status !== 200) return statusAndCode(answer)
  const { error, result } = answer.body
  return error ? [error.code, error.message] : result
}
