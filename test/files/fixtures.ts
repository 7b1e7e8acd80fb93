import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { handleRequest } from '../../src/gateway'
import { tenantFolder } from '../../src/tenancy/databases'
import type { TestResponse } from '../test-tenant'

/** The smallest picture: one transparent pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

export const sha256Of = (bytes: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

/** Returns the paths of all files that a tenant has below its folder of files, sorted. */
export function listStored(tenant: string): string[] {
  const folder = join(tenantFolder(tenant), 'files')
  try {
    return (readdirSync(folder, { recursive: true }) as string[])
      .filter((path) => statSync(join(folder, path)).isFile())
      .sort()
  } catch {
    return []
  }
}

type Content = string | Uint8Array<ArrayBuffer> | ReadableStream
type Owner = { origin: string; tokens: { user: string } }

/** Returns functions that upload as `token` and read responses as bytes. */
export function fileClient({ origin }: Owner, token: string) {
  const headers = { 'x-api-key': token, host: new URL(origin).host }
  const send = (method: string, path: string, more: Record<string, string> = {}, body?: Content) =>
    handleRequest(new Request(`${origin}/api${path}`, { method, headers: { ...headers, ...more }, body }))
  return {
    send,
    async upload(body: Content, name = 'a.txt', type = 'text/plain') {
      const path = `/files?name=${encodeURIComponent(name)}`
      const response = await send('POST', path, { 'content-type': type }, body)
      return { status: response.status, body: (await response.json()) as TestResponse['body'] }
    },
    async uploadForm(form: FormData) {
      // A form of a Request has no boundary in its headers before it is read.
      const encoded = new Response(form)
      const response = await send(
        'POST',
        '/files',
        { 'content-type': encoded.headers.get('content-type')! },
        new Uint8Array(await encoded.arrayBuffer()),
      )
      return { status: response.status, body: (await response.json()) as TestResponse['body'] }
    },
  }
}
