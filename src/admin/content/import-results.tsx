import { CloseButton, Group, Text } from '@mantine/core'
import type { ComponentBulkResult } from '../api/schema'
import { StateTag } from '../ui/state-tag'
import classes from './content.module.css'

/** What became of each component of an import. */
export const ImportResults = ({
  total,
  succeeded,
  results,
  onClose,
}: ComponentBulkResult & { onClose: () => void }) => (
  <section aria-label="Results of the import">
    <Group gap="xs">
      <Text size="sm" role="status">
        {succeeded} of {total} {total === 1 ? 'component was' : 'components were'} stored.
      </Text>
      <CloseButton size="sm" aria-label="Hide the results" onClick={onClose} />
    </Group>
    <ul className={classes.results}>
      {results
        .filter(({ success }) => !success)
        .map(({ identifier, error }, n) => (
          <li key={n}>
            <StateTag label="failed" tone="bad" /> {identifier}: {error}
          </li>
        ))}
    </ul>
  </section>
)
