import { issueApiToken } from '../../src/accounts/api-tokens'
import { handleRequest } from '../../src/gateway'
import { getTenant } from '../../src/tenancy/tenants'
import { fileClient } from '../files/fixtures'

type Owner = Parameters<typeof fileClient>[0] & { tokens: { admin: string } }

/** Uploads files as the tenant's admin, by their names. */
export async function uploadFiles(own: Owner, contents: Record<string, string>) {
  const client = fileClient(own, own.tokens.admin)
  for (const [name, content] of Object.entries(contents)) {
    const { status } = await client.upload(content, name)
    if (status !== 201) throw new Error(`The upload of ${name} was answered with ${status}.`)
  }
}

/** Returns the content of each file of a tenant by its name; the status of the answer where there is none. */
export async function readFilesOf(tenant: string, user: string) {
  const { token } = await issueApiToken(await getTenant(tenant), user, { nickname: 'files' })
  const get = (path: string) =>
    handleRequest(new Request(`http://localhost${path}`, { headers: { tenant, 'x-api-key': token } }))
  const files = (await (await get('/api/files')).json()) as { name: string; url: string }[]
  const entries = await Promise.all(
    files.map(async ({ name, url }) => {
      const response = await get(url)
      return [name, response.status === 200 ? await response.text() : response.status] as const
    }),
  )
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
