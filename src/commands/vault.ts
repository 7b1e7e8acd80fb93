import { Command } from 'commander'
import { rotate } from '../accounts/vault/rotate'
import { renewSecrets } from '../tenancy/secrets'
import { answers } from './output'

const change = new Command('rotate')
  .description('encrypt what is in the vaults with a new key, while tenants are served')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      async (_options: object, _command: Command) => {
        const done = await rotate()
        if (done.failed.length) process.exitCode = 1
        return done
      },
      ({ key, tenants, sealed, lost, failed }) =>
        [
          `Encrypted ${sealed} texts of ${tenants} tenants with the key ${key}.`,
          ...(lost ? [`${lost} can be opened by no key that is here. They were left as they are.`] : []),
          ...failed.map(({ tenant, error }) => `${tenant}: ${error}`),
          failed.length ? 'The old key is kept. Run this again when that is mended.' : 'The old key is forgotten.',
        ].join('\n'),
    ),
  )

const renew = new Command('new-keys')
  .description('Make new keys in the place of lost ones: everybody is signed out, and encrypted values are lost')
  .option('--yes', 'Do it without a question')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      async ({ yes }: { yes?: boolean }, command: Command) => {
        if (!yes)
          command.error('New keys sign everybody out, and what was encrypted with the old ones is lost. Add --yes.')
        return renewSecrets()
      },
      ({ aside }) => `There are new keys now.${aside ? ` The old file is ${aside}.` : ''}`,
    ),
  )

export const vault = new Command('vault')
  .description('change the key of what is kept encrypted')
  .addCommand(change)
  .addCommand(renew)
