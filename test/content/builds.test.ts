import { describe, expect, test } from 'bun:test'
import { callApi, statusAndCode } from '../test-tenant'
import { cardComponent, createComponentsFixture } from './fixtures'

describe('the compiled files of a component', () => {
  test('anonymous callers list and read the files of a component, which are immutable and cached by ETag', async () => {
    const { editor, anonymous, origin, fetch } = await createComponentsFixture()
    const { compiledContent } = (await editor.post('/components', cardComponent())).body
    const { status, body } = await anonymous.get('/static')
    expect(status).toBe(200)
    const address = (kind: string) => expect.stringMatching(new RegExp(`^/api/static/card\\.[0-9a-f]{32}\\.${kind}$`))
    expect(body).toEqual([{ identifier: 'card', js: address('js'), css: address('css') }])
    for (const [path, type, text] of [
      [body[0].js, 'text/javascript;charset=utf-8', compiledContent.js],
      [body[0].css, 'text/css;charset=utf-8', compiledContent.css],
    ]) {
      const answer = await fetch(path)
      expect([answer.status, answer.body]).toEqual([200, text])
      const { headers } = answer
      expect(headers.get('content-type')).toBe(type)
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
      // Browsers load modules by CORS, and the files are public.
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      const etag = headers.get('etag')!
      const known = await fetch(path, { 'if-none-match': `W/${etag}` })
      expect([known.status, known.body, known.headers.get('etag')]).toEqual([304, undefined, etag])
      expect((await fetch(path, { 'if-none-match': '"other"' })).status).toBe(200)
      const head = await callApi('HEAD', `${origin}${path}`)
      expect([head.status, head.body, head.headers.get('etag')]).toEqual([200, undefined, etag])
    }
  })

  test('GET /static ignores credentials, even invalid ones, and sets no cookie', async () => {
    const { id, make, paths, fetch } = await createComponentsFixture()
    await make('export const a = 1')
    for (const path of ['/api/static', (await paths()).js])
      for (const headers of [{ cookie: `atoll_${id}=dead` }, { 'x-api-key': 'atl_x' }, { authorization: 'Bearer x' }]) {
        const answer = await fetch(path, headers as never)
        expect([answer.status, answer.headers.get('set-cookie')]).toEqual([200, null])
      }
  })

  test('the address of a file changes with its content only', async () => {
    const { editor, make, paths } = await createComponentsFixture()
    await make('export const a = 1')
    const first = await paths()
    await editor.put('/components/card', { description: 'x', content: 'export const a: number = 1' })
    expect(await paths()).toEqual(first)
    await editor.put('/components/card', { content: 'export const a = 1\n<style>.a {}</style>' })
    const second = await paths()
    expect(second.js).not.toBe(first.js)
    expect(second.css).not.toBe(first.css)
    const back = await editor.put('/components/card', { content: 'export const a = 1' })
    expect([back.status, await paths()]).toEqual([200, first])
  })

  test('the files of the last ten builds of a component are kept', async () => {
    const { editor, make, paths, fetch } = await createComponentsFixture()
    await make('export const a = 0')
    const all = [await paths()]
    for (let n = 1; n < 10; n++) {
      await editor.put('/components/card', { content: `export const a = ${n}` })
      // A change that does not affect the build makes no new one.
      await editor.put('/components/card', { description: `${n}` })
      all.push(await paths())
    }
    expect((await fetch(all[0]!.js)).body).toBe('export const a = 0;\n')
    await editor.put('/components/card', { content: 'export const a = 10' })
    expect(statusAndCode(await fetch(all[0]!.js))).toEqual([404, 'STATIC_FILE_NOT_FOUND'])
    for (const [n, { js }] of all.entries()) if (n) expect((await fetch(js)).body).toBe(`export const a = ${n};\n`)

    // An old build that is current again counts as the newest.
    await editor.put('/components/card', { content: 'export const a = 1' })
    for (let n = 20; n < 29; n++) await editor.put('/components/card', { content: `export const a = ${n}` })
    expect((await fetch(all[1]!.js)).status).toBe(200)
    expect((await fetch(all[2]!.js)).status).toBe(404)
  })

  test('the files of a renamed component stay, and the files of a deleted component are removed', async () => {
    const { editor, make, paths, fetch } = await createComponentsFixture()
    const { _id } = await make('export const a = 1')
    const before = await paths()
    await editor.put('/components/card', { identifier: 'tile' })
    const after = await paths('tile')
    expect(after.js).toStartWith('/api/static/tile.')
    for (const { js } of [before, after]) expect((await fetch(js)).body).toBe('export const a = 1;\n')

    // Two components with equal files share an address until both are deleted.
    await make('export const a = 1')
    expect(await paths()).toEqual(before)
    expect((await fetch(before.js)).status).toBe(200)
    await editor.delete(`/components/${_id}`)
    expect((await fetch(before.js)).status).toBe(200)
    expect((await fetch(after.js)).status).toBe(404)
    await editor.delete('/components/card')
    expect((await fetch(before.js)).status).toBe(404)
  })

  test('GET /static answers 404 STATIC_FILE_NOT_FOUND for any other path', async () => {
    const { make, paths, fetch } = await createComponentsFixture()
    await make('export const a = 1')
    const { js } = await paths()
    const hash = /[0-9a-f]{32}/.exec(js)![0]
    for (const path of [
      ...[`/card.${hash}.map`, `/card.${hash}`, `/card.${hash}.JS`, `/card.${'0'.repeat(32)}.js`, `/Card.${hash}.js`],
      ...[
        `/card.${hash.slice(1)}.js`,
        `/${hash}.js`,
        '/card.js',
        '/card',
        '/%00',
        '/..%2f..%2fetc%2fpasswd',
        '/%ff.js',
      ],
    ])
      expect([path, ...statusAndCode(await fetch(`/api/static${path}`))]).toEqual([path, 404, 'STATIC_FILE_NOT_FOUND'])
    expect((await fetch(js.replace('/api', '/api/v1'))).status).toBe(200)
    expect((await callApi('POST', `http://x${js}`)).status).toBe(405)
  })
})
