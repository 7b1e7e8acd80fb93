import { type Header, pack } from 'tar-stream'
import { handleRequest } from '../../src/gateway'
import type { createTestTenant, TestResponse } from '../test-tenant'

type Content = string | Uint8Array
/** A file by its name, or the header of any entry with its content. */
export type ArchiveEntry =
  | [name: string, content: Content]
  | { header: Partial<Header> & { name: string }; content?: Content }

/** Returns a tar archive. */
export async function packTar(...entries: ArchiveEntry[]): Promise<Uint8Array<ArrayBuffer>> {
  const archive = pack()
  for (const entry of entries) {
    const [header, content] = Array.isArray(entry)
      ? [{ name: entry[0] }, entry[1]]
      : [entry.header, entry.content ?? '']
    archive.entry(header, Buffer.from(content as string))
  }
  archive.finalize()
  const chunks: Uint8Array[] = []
  for await (const chunk of archive) chunks.push(chunk as Uint8Array)
  return new Uint8Array(Buffer.concat(chunks))
}

export const INDEX: ArchiveEntry = ['index.html', '<!doctype html><title>Home</title>']

type Body = Uint8Array<ArrayBuffer> | ReadableStream
type SiteTenant = Pick<Awaited<ReturnType<typeof createTestTenant>>, 'id' | 'origin' | 'tokens'>

/** Returns functions that deploy to the site of a tenant as an admin, and open its pages as a guest. */
export function siteClient({ origin, tokens }: SiteTenant, token = tokens.admin) {
  const { host } = new URL(origin)
  return {
    async deploy(body: Body, query = '', type = 'application/x-tar'): Promise<TestResponse> {
      const headers = { 'x-api-key': token, host, 'content-type': type }
      const response = await handleRequest(new Request(`${origin}/api/sites${query}`, { method: 'PUT', headers, body }))
      return { status: response.status, headers: response.headers, body: await response.json() }
    },
    open: (path: string, headers: Record<string, string> = {}, method = 'GET') =>
      handleRequest(new Request(`${origin}${path}`, { method, headers: { host, ...headers } })),
    async read(path: string, headers: Record<string, string> = {}) {
      const response = await this.open(path, headers)
      return [response.status, await response.text()]
    },
  }
}
