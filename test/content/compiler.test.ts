// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '../../src/content/compiler'
import { errorOf } from '../rejections'
import { createTempFolder } from '../temp-folder'
import { statusAndCode } from '../test-tenant'
import { constantFoldingBomb, createComponentsFixture } from './fixtures'

const sharedFixture = createComponentsFixture()
let moduleCount = 0

/** Creates a component with this content and returns its module and style sheet as they are served. */
async function compileAndFetch(content: string) {
  const { make, paths, fetch } = await sharedFixture
  const identifier = `c${++moduleCount}`
  await make(content, identifier)
  const { js, css } = await paths(identifier)
  const [script, style] = [await fetch(js), await fetch(css)]
  return { js: (script.body ?? '') as string, css: (style.body ?? '') as string }
}

/** The details of the 400 answer to this content. */
async function compileErrors(
  content: string,
): Promise<{ path: string; message: string; line?: number; column?: number }[]> {
  const answer = await (await sharedFixture).editor.post('/components', { identifier: 'wrong', content })
  expect([content.slice(0, 200), ...statusAndCode(answer)]).toEqual([content.slice(0, 200), 400, 'INVALID_INPUT'])
  expect(answer.body.message).toContain(answer.body.details[0].message)
  return answer.body.details
}

const folder = createTempFolder('modules')

/** Imports a served module as a browser would, without compiling it again. */
function importModule(js: string) {
  const file = join(folder, `${++moduleCount}.mjs`)
  writeFileSync(file, js)
  return import(file)
}

describe('the module of a component', () => {
  test('TypeScript is compiled to JavaScript without types and type imports', async () => {
    const { js } = await compileAndFetch(`
      import type { Gone } from './types'
      import { AlsoGone } from './types'
      enum Level { low = 1, high }
      interface Named { name: string }
      export const greet = <T extends Named,>(who: T, level: Level = Level.high): string => \`\${who.name!} \${level as number}\`
      export const use = (_: Gone | AlsoGone) => 1`)
    expect(js).not.toContain('import')
    const { greet } = await importModule(js)
    expect(greet({ name: 'Ada' })).toBe('Ada 2')
  })

  test('JSX calls the global React, or the functions that a @jsx comment names', async () => {
    const { js } = await compileAndFetch('export const Card = ({ name }) => <b id="x" {...{ key: 1 }}>{name}<></></b>')
    const { Card } = await importModule(js)
    const React = { Fragment: 'fragment', createElement: (...all: unknown[]) => all }
    Object.assign(globalThis, { React })
    expect(Card({ name: 'Ada' })).toEqual(['b', { id: 'x', key: 1 }, 'Ada', ['fragment', null]])
    Reflect.deleteProperty(globalThis, 'React')

    const withComment = await compileAndFetch(
      '/** @jsx h @jsxFrag F */\nconst [h, F] = [Array.of, 0]; export const a = <><b/></>',
    )
    expect((await importModule(withComment.js)).a).toEqual([0, null, ['b', null]])
  })

  test('comments that ask for the automatic JSX runtime are ignored', async () => {
    for (const comment of [
      '/** @jsxRuntime automatic */',
      '// @jsxImportSource preact',
      '/* @jsxRuntime automatic @jsxImportSource x */',
    ])
      expect((await compileAndFetch(`${comment}\nexport const a = () => <a/>`)).js).toBe(
        'export const a = () => React.createElement("a", null);\n',
      )
  })

  test('imports of modules stay as they are written', async () => {
    const { js } = await compileAndFetch(`import React, { useState } from 'react'
      import './side'; import x from 'https://cdn.test/x.js'; export * from '../y.js'
      export default () => <b>{useState}{x}{import('./lazy')}</b>`)
    expect([...js.matchAll(/["']([^"']*)["'](?=;|\))/g)].map(([, spec]) => spec)).toEqual(
      expect.arrayContaining(['react', './side', 'https://cdn.test/x.js', '../y.js', './lazy']),
    )
  })

  test('a module is compiled for production and contains no paths or variables of the server', async () => {
    const { js } = await compileAndFetch(
      'export const mode = process.env.NODE_ENV; export const all = () => [process.env.HOME, process.env.PATH, __dirname, __filename, import.meta.dir, import.meta.url]',
    )
    expect(js).toContain('mode = "production"')
    expect(js).toContain('process.env.HOME')
    for (const serverPath of [process.env.HOME, process.cwd(), import.meta.dir])
      expect(js).not.toContain(`"${serverPath}`)
  })

  test('string literals keep style tags, script tags and special characters', async () => {
    const text = "</script><style>.a{}</style> \u2028 é 😀 // '"
    const { js, css } = await compileAndFetch(
      `export const a = ${JSON.stringify(text)}; export const b = \`<style>.b{}</style>\``,
    )
    expect([await importModule(js), css]).toMatchObject([{ a: text, b: '<style>.b{}</style>' }, ''])
  })
})

describe('style elements of a component', () => {
  test('top-level style elements become one style sheet, wherever they stand', async () => {
    const { js, css } = await compileAndFetch(
      `<style>
  .a > b { content: '</p>' }
</style>
export const a = 1 // not <style>.no{}</style>
/* nor <style>.no{}</style> */
<style lang="css">.b{}</style>
export const b = () => { const don't = 0 }
<style></style>`.replace("don't", 'dont'),
    )
    expect(css).toBe(".a > b { content: '</p>' }\n.b{}")
    expect(await importModule(js)).toMatchObject({ a: 1 })
  })

  test('the content of a style element is neither parsed nor run', async () => {
    const css = '*/ alert(1) } process.exit() @import "x"; \\ ` <script>alert(1)</script>'
    const { css: sheet, js } = await compileAndFetch(`<style>${css}</style>`)
    expect([sheet, js]).toEqual([css, ''])
  })

  test('a style element inside JSX stays in JSX', async () => {
    const { js, css } = await compileAndFetch('export const a = () => <p><style>{`.a { color: red }`}</style></p>')
    expect(css).toBe('')
    expect(js).toContain('React.createElement("style", null, `.a { color: red }`)')
  })

  test('an error after a style element has its original line and column', async () => {
    expect(await compileErrors('<style>\n.a{}\n</style> let x = ;')).toMatchObject([{ line: 3, column: 18 }])
  })
})

describe('content that does not compile', () => {
  test('rejects syntax errors with 400 INVALID_INPUT and their lines and columns, and keeps the component', async () => {
    expect(await compileErrors('export const a = 1\nlet x = ;\n')).toEqual([
      { path: '/content', message: 'Line 2, column 9: Unexpected ;.', line: 2, column: 9 },
    ])
    expect(await compileErrors('let a; let a; let b; let b')).toMatchObject([{ column: 12 }, { column: 26 }])
    expect(await compileErrors('export const a = () => <p>')).toMatchObject([{ line: 1 }])
    expect((await compileErrors('let a;'.repeat(1_000))).length).toBe(20)
    const { make, editor } = await sharedFixture
    const before = await make('export const a = 1', 'kept')
    expect((await editor.put('/components/kept', { content: '(', description: 'x' })).status).toBe(400)
    expect((await editor.get('/components/kept')).body).toEqual(before)
  })

  test('an error that contains very long names is shortened', async () => {
    const { editor } = await sharedFixture
    const name = 'a'.repeat(100_000)
    const answer = await editor.post('/components', {
      identifier: 'long',
      content: `const ${name} = 1\nconst ${name} = 2`,
    })
    expect([...statusAndCode(answer), answer.body.details[0].line]).toEqual([400, 'INVALID_INPUT', 2])
    expect(JSON.stringify(answer.body).length).toBeLessThan(1_500)
  })

  test('rejects syntax that browsers do not support yet', async () => {
    for (const content of ['@d class A {}', 'class A { accessor x = 1 }; new A()', 'using a = b()'])
      expect((await compileErrors(content))[0]!.message).toContain('browsers')
  })

  test('rejects macros, and file imports neither run code nor read the file', async () => {
    const [file, trace] = [join(folder, 'macro.ts'), join(folder, 'ran')]
    writeFileSync(
      file,
      `import { writeFileSync } from 'node:fs'\nexport const run = () => (writeFileSync('${trace}', ''), 1)\nrun()`,
    )
    for (const content of [
      `import { run } from '${file}' with { type: 'macro' }; export const a = run()`,
      `import { run } from '${file}' assert { type: 'macro' }; export const a = run()`,
      `import { run } from 'macro:${file}'; export const a = run()`,
    ])
      expect((await compileErrors(content))[0]!.message).toContain('Macros are disabled')
    for (const type of ['text', 'json', 'file']) {
      const { js } = await compileAndFetch(`import x from '${file}' with { type: '${type}' }; export const a = x`)
      expect(js).not.toContain('writeFileSync')
    }
    expect(existsSync(trace)).toBeFalse()
  })
})

describe('hostile content', () => {
  const DEEP = 80_000
  const deep: Record<string, string> = {
    brackets: `let x = ${'['.repeat(DEEP)}${']'.repeat(DEEP)}`,
    'open brackets': '('.repeat(DEEP),
    objects: `let x = ${'{a:'.repeat(DEEP / 2)}1${'}'.repeat(DEEP / 2)}`,
    templates: `let x = ${'`${'.repeat(DEEP / 2)}1${'}`'.repeat(DEEP / 2)}`,
    JSX: `let x = ${'<a>'.repeat(DEEP / 4)}${'</a>'.repeat(DEEP / 4)}`,
    functions: `${'function f(){'.repeat(DEEP / 8)}${'}'.repeat(DEEP / 8)}`,
  }
  test.each(Object.keys(deep))('rejects deeply nested %s with 400 INVALID_INPUT', async (kind) => {
    expect(deep[kind]!.length).toBeLessThanOrEqual(256 << 10)
    expect((await compileErrors(deep[kind]!))[0]!.message).toEndWith('The code is nested too deeply.')
  })

  test('rejects content that folds constants without end, while the server keeps its memory and event loop', async () => {
    expect(constantFoldingBomb(60).length).toBeLessThan(2_000)
    const before = process.memoryUsage.rss()
    let turns = 0
    const ticking = setInterval(() => turns++, 1)
    const refused = await compileErrors(constantFoldingBomb(60))
    clearInterval(ticking)
    expect(refused).toEqual([{ path: '/content', message: 'The code takes too much time or memory to compile.' }])
    expect(process.memoryUsage.rss() - before).toBeLessThan(100e6)
    expect(turns).toBeGreaterThan(10)
  })

  test('rejects content that compiles to more than 524,288 characters', async () => {
    expect((await compileErrors(constantFoldingBomb(20)))[0]!.message).toBe(
      'It compiles to more than 524288 characters.',
    )
  })

  test('rejects content that keeps the compiler busy', async () => {
    expect((await compileErrors('<style>.'.repeat((256 << 10) / 8)))[0]!.path).toBe('/content')
  })

  test('a flood of compilations delays no other tenant and answers 503 beyond the queue', async () => {
    const [flooded, { make }] = [await createComponentsFixture(), await sharedFixture]
    const flood = Array.from({ length: 60 }, (_, n) =>
      flooded.editor.post('/components', { identifier: `c${n}`, content: 'export const a = 1' }),
    )
    expect((await make('export const a = 1', 'beside')).identifier).toBe('beside')
    const statuses = (await Promise.all(flood)).map(({ status }) => status)
    expect([...new Set(statuses)].sort()).toEqual([201, 503])
    expect(statuses.filter((status) => status === 201).length).toBeGreaterThanOrEqual(50)
  })

  test('a hostile component fails alone in a bulk request, unless the request has too many of them', async () => {
    const { editor } = await sharedFixture
    const bulk = async (...contents: string[]) => {
      const components = contents.map((content, n) => ({ identifier: `bulk${n}`, content }))
      const { body } = await editor.post('/components/bulk', { components })
      return body.results.map(({ success }: { success: boolean }) => success)
    }
    const good = 'export const a = 1'
    expect(await bulk(good, constantFoldingBomb(60), `${good}0`, '(')).toEqual([true, false, true, false])
    const bad = [60, 61, 62, 63, 64].map(constantFoldingBomb)
    expect(await bulk(good, ...bad, `${good}0`)).toEqual([true, false, false, false, false, false, false])
    expect(await bulk(good)).toEqual([true])
  })

  test('content of the largest allowed size compiles', async () => {
    const start = 'export const a = ['
    const content = `${start}${'1,'.repeat(((256 << 10) - start.length - 1) >> 1)}]`
    expect((await compileAndFetch(content)).js.length).toBeGreaterThan(250_000)
    for (const many of ['/*', '`${', "'", '"', '<!--', 'a<'])
      expect((await compileErrors(many.repeat((256 << 10) / 8)))[0]!.path).toBe('/content')
  })
})

/** The ids of the compiler processes of this process. */
const listCompilerPids = () =>
  readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        const [, parent] = /\) \w (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))!
        return Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('Bun.Transpiler')
      } catch {
        return false // the process has ended
      }
    })
    .map(Number)

test.skipIf(!existsSync('/proc/self/stat'))('a compilation whose process was killed fails with 503', async () => {
  const { tenant } = await sharedFixture
  const compiling = compile(tenant, [constantFoldingBomb(60)])
  for (const pid of listCompilerPids()) process.kill(pid, 'SIGKILL')
  expect(await errorOf(compiling)).toMatchObject({ status: 503 })
  expect(listCompilerPids()).toEqual([])
})
