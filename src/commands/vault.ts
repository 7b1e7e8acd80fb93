import { Command } from 'commander'
import { rotate } from '../accounts/vault/rotate'
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

export const vault = new Command('vault').description('change the key of what is kept encrypted').addCommand(change)
