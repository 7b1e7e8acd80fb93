import { expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../../fakes/cli'

setDefaultTimeout(60_000)

test('an atomic import leaves nothing behind when the server is killed by SIGKILL', async () => {
  const at = createTempFolder()
  await createTenantByCli({ at }, 'acme')
  const path = '/api/blueprints/things/entities'
  let headers: Record<string, string>
  {
    await using server = await startAtoll({ at })
    headers = await signIn(server.url, 'acme')
    const call = apiCaller(server.url, headers)
    const fields = [{ key: 'title', type: 'string' }]
    await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
    await call('POST', path, { identifier: 'old', title: 'before' })
    const count = async () => Number((await call('GET', `${path}?$count=true&$limit=1`)).headers.get('x-total-count'))
    let sent = 0
    const endless = new ReadableStream({
      async pull(controller) {
        if (sent) await Bun.sleep(2)
        const lines = Array.from({ length: 100 }, (_, n) => `{"identifier":"i${sent * 100 + n}","title":"x"}\n`)
        controller.enqueue(Buffer.from(`{"identifier":"old","title":"after"}\n${lines.join('')}`))
        sent++
      },
    })
    const url = `${server.url}${path}/import?format=ndjson&mode=upsert&atomic=true`
    const broken = fetch(url, { method: 'POST', headers, body: endless }).catch((error: Error) => error)
    while ((await count()) < 500) await Bun.sleep(5)
    await server.end('SIGKILL')
    expect(await broken).toBeInstanceOf(Error)
  }
  await using server = await startAtoll({ at })
  const call = apiCaller(server.url, headers)
  const { headers: listHeaders, body } = await call('GET', `${path}?$count=true`)
  expect(listHeaders.get('x-total-count')).toBe('1')
  expect(body.map(({ identifier, title }: Record<string, string>) => [identifier, title])).toEqual([['old', 'before']])
  expect((await call('GET', `${path}?title=x&$count=true`)).headers.get('x-total-count')).toBe('0')
})
