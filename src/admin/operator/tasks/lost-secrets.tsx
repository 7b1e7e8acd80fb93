import { Alert } from '@mantine/core'

/** Says that secrets are missing in a restored or copied tenant, and what to do. */
export const LostSecrets = ({ count }: { count: number }) =>
  count > 0 && (
    <Alert color="yellow" variant="light" w="100%">
      {count.toLocaleString()} {count === 1 ? 'secret was left out. Enter it' : 'secrets were left out. Enter them'}{' '}
      again in the connections and settings of the tenant.
    </Alert>
  )
