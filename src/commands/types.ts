import { Command } from 'commander'
import { written } from '../blueprints/types/files'
import { storage } from '../tenancy/storage'
import { tenantNamed } from '../tenancy/tenants'
import { keep, write } from './output'

type Asked = { tenant: string; client?: boolean; out?: string; json?: boolean }

export const types = new Command('types')
  .description("Write a tenant's blueprints as TypeScript")
  .requiredOption('--tenant <id>', 'the id of the tenant')
  .option('--client', 'include a client of its entities')
  .option('--out <file>', 'the file to write; default: standard output')
  .option('--json', 'print JSON')
  .action(async ({ tenant, client, out, json }: Asked) => {
    try {
      const texts = written(await tenantNamed(tenant), client ? 'client' : 'types')
      if (out) {
        await keep(texts, out)
        console.log(json ? JSON.stringify({ file: out }) : `Wrote ${out}.`)
      } else if (json) console.log(JSON.stringify({ text: (await Array.fromAsync(texts)).join('') }))
      else await write(texts, Bun.stdout.writer())
    } finally {
      await storage.close()
    }
  })
