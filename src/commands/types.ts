import { basename, dirname, relative } from 'node:path'
import { Command } from 'commander'
import { toHooksSource } from '../blueprints/typegen/client-source'
import { generateTypes } from '../blueprints/typegen/generator'
import { badRequest } from '../core/problem'
import { databases } from '../tenancy/databases'
import { getTenant } from '../tenancy/tenants'
import { writeFileAtomic, writeTexts } from './output'

type TypesOptions = { tenant: string; client?: boolean; hooks?: string; out?: string; json?: boolean }

export const types = new Command('types')
  .description("Write a tenant's blueprints as TypeScript")
  .requiredOption('--tenant <id>', 'the id of the tenant')
  .option('--client', 'include a client of the tenant')
  .option(
    '--hooks <file>',
    'with --client and --out: write React hooks of the client, over TanStack Query, to this file',
  )
  .option('--out <file>', 'the file to write; default: standard output')
  .option('--json', 'print JSON')
  .action(async ({ tenant, client, hooks, out, json }: TypesOptions) => {
    try {
      if (hooks && !(client && out))
        badRequest({ path: '--hooks', message: 'The hooks import the client. Add --client and --out.' })
      const texts = generateTypes(await getTenant(tenant), client ? 'client' : 'types')
      if (out) {
        await writeFileAtomic(texts, out)
        if (hooks) await writeFileAtomic([toHooksSource(toModulePath(hooks, out))], hooks)
        const files = hooks ? `${out} and ${hooks}` : out
        console.log(json ? JSON.stringify({ file: out, ...(hooks && { hooks }) }) : `Wrote ${files}.`)
      } else if (json) console.log(JSON.stringify({ text: (await Array.fromAsync(texts)).join('') }))
      else await writeTexts(texts, Bun.stdout.writer())
    } finally {
      await databases.close()
    }
  })

/** Returns how a module is imported by another one. */
function toModulePath(from: string, to: string) {
  const folder = relative(dirname(from), dirname(to)).replaceAll('\\', '/')
  const start = folder.startsWith('..') ? folder : ['.', folder].filter(Boolean).join('/')
  return `${start}/${basename(to).replace(/\.ts$/, '')}`
}
