// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { inspect, makeJpeg } from './pictures'

setDefaultTimeout(300_000) // compiles the binary

test('the binary makes thumbnails in a process of its own', async () => {
  const at = createTempFolder()
  await createTenantByCli({ at }, 'shop')
  await using server = await startAtoll({ at })
  const headers = await signIn(server.url, 'shop')
  const upload = await fetch(`${server.url}/api/files?name=photo.jpg`, {
    ...{ method: 'POST', headers: { ...headers, 'content-type': 'image/jpeg' } },
    body: new Uint8Array(await makeJpeg(1_200, 600)),
  })
  const { url } = (await upload.json()) as { url: string }
  for (const fit of ['cover', 'contain', 'inside']) {
    const response = await fetch(`${server.url}${url}?thumb=100x100&fit=${fit}`, { headers })
    expect([fit, response.status]).toEqual([fit, 200])
    expect(await inspect(await response.bytes())).toMatchObject({ width: 100, height: fit === 'inside' ? 50 : 100 })
  }
})
