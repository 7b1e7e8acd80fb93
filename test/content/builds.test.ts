import { describe, expect, test } from 'bun:test'
import { callApi, statusAndCode } from '../test-tenant'
import { cardComponent, createComponentsFixture } from './fixtures'

describe('the files of a component', () => {
  test('are listed for anybody, and can be kept forever', async () => {
    const { editor, stranger, origin, fetch } = await createComponentsFixture()
    const { compiledContent } = (await editor.post('/components', cardComponent())).body
    const { status, body } = await stranger.get('/static')
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
      // A module is asked for by CORS, and there is nothing in it that is not for everybody.
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

  test('come without looking at credentials, and never with a cookie', async () => {
    const { id, make, paths, fetch } = await createComponentsFixture()
    await make('export const a = 1')
    for (const path of ['/api/static', (await paths()).js])
      for (const headers of [{ cookie: `atoll_${id}=dead` }, { 'x-api-key': 'atl_x' }, { authorization: 'Bearer x' }]) {
        const answer = await fetch(path, headers as never)
        expect([answer.status, answer.headers.get('set-cookie')]).toEqual([200, null])
      }
  })

  test('have an address that says what is in them', async () => {
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

  test('are there for pages that were loaded before a change, ten builds long', async () => {
    const { editor, make, paths, fetch } = await createComponentsFixture()
    await make('export const a = 0')
    const all = [await paths()]
    for (let n = 1; n < 10; n++) {
      await editor.put('/components/card', { content: `export const a = ${n}` })
      // What changes nothing of the build makes none.
      await editor.put('/components/card', { description: `${n}` })
      all.push(await paths())
    }
    expect((await fetch(all[0]!.js)).body).toBe('export const a = 0;\n')
    await editor.put('/components/card', { content: 'export const a = 10' })
    expect(statusAndCode(await fetch(all[0]!.js))).toEqual([404, 'STATIC_FILE_NOT_FOUND'])
    for (const [n, { js }] of all.entries()) if (n) expect((await fetch(js)).body).toBe(`export const a = ${n};\n`)

    // An old one that is used again is the newest: it is not forgotten while newer ones are kept.
    await editor.put('/components/card', { content: 'export const a = 1' })
    for (let n = 20; n < 29; n++) await editor.put('/components/card', { content: `export const a = ${n}` })
    expect((await fetch(all[1]!.js)).status).toBe(200)
    expect((await fetch(all[2]!.js)).status).toBe(404)
  })

  test('stay when it gets another identifier, and go when it is removed', async () => {
    const { editor, make, paths, fetch } = await createComponentsFixture()
    const { _id } = await make('export const a = 1')
    const before = await paths()
    await editor.put('/components/card', { identifier: 'tile' })
    const after = await paths('tile')
    expect(after.js).toStartWith('/api/static/tile.')
    for (const { js } of [before, after]) expect((await fetch(js)).body).toBe('export const a = 1;\n')

    // Another one that is as it was has the same address, whoever goes first.
    await make('export const a = 1')
    expect(await paths()).toEqual(before)
    expect((await fetch(before.js)).status).toBe(200)
    await editor.delete(`/components/${_id}`)
    expect((await fetch(before.js)).status).toBe(200)
    expect((await fetch(after.js)).status).toBe(404)
    await editor.delete('/components/card')
    expect((await fetch(before.js)).status).toBe(404)
  })

  test('are not found by any other name', async () => {
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
