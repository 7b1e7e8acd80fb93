import { Command } from 'commander'
import { generateTypes } from '../blueprints/typegen/generator'
import { databases } from '../tenancy/databases'
import { getTenant } from '../tenancy/tenants'
import { writeFileAtomic, writeTexts } from './output'

type TypesOptions = { tenant: string; client?: boolean; out?: string; json?: boolean }

export const types = new Command('types')
  .description("Write a tenant's blueprints as TypeScript")
  .requiredOption('--tenant <id>', 'the id of the tenant')
  .option('--client', 'include a client of its entities')
  .option('--out <file>', 'the file to write; default: standard output')
  .option('--json', 'print JSON')
  .action(async ({ tenant, client, out, json }: TypesOptions) => {
    try {
      const texts = generateTypes(await getTenant(tenant), client ? 'client' : 'types')
      if (out) {
        await writeFileAtomic(texts, out)
        console.log(json ? JSON.stringify({ file: out }) : `Wrote ${out}.`)
      } else if (json) console.log(JSON.stringify({ text: (await Array.fromAsync(texts)).join('') }))
      else await writeTexts(texts, Bun.stdout.writer())
    } finally {
      await databases.close()
    }
  })
