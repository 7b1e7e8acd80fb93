import { Button, Group, Table, Text } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { downloadRefusedRows, type ImportRun } from './import-run'
import { describeDialect } from './notation-inputs'
import classes from './transfer.module.css'

const ROWS_SHOWN = 50

const formatRowCount = (count: number) => `${count.toLocaleString()} ${count === 1 ? 'row' : 'rows'}`

/** The result of an import or of a check, with the rows that were refused and why. */
export function ImportSummary({ run, onAnother }: { run: ImportRun; onAnother?: () => void }) {
  const { request, report, failure } = run
  const { imported, failed, refused } = report
  const { isDryRun, blueprint } = request
  return (
    <section className={classes.summary} aria-label="Report">
      <Group gap="xs">
        <Text fw={600} role="status">
          {formatRowCount(imported)} {isDryRun ? 'can be imported' : 'imported'}
          {failed > 0 && `, ${formatRowCount(failed)} ${isDryRun ? 'would be refused' : 'refused'}`}.
        </Text>
        {!isDryRun && imported > 0 && (
          <Button component={Link} to={`/data/${blueprint.key}`} size="compact-sm" variant="light">
            Show {blueprint.name.toLowerCase()}
          </Button>
        )}
        {refused.length > 0 && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconDownload size={14} />}
            onClick={() => downloadRefusedRows(run)}
          >
            Download the refused rows
          </Button>
        )}
        {onAnother && (
          <Button size="compact-sm" variant="default" onClick={onAnother}>
            Import another file
          </Button>
        )}
      </Group>
      {request.file.dialect && (
        <Text size="sm" c="dimmed">
          {describeDialect(request.file, Object.values(request.targets))}
        </Text>
      )}
      {failure && (
        <Text c="red">
          {failure} {!isDryRun && imported > 0 && 'Entities that were already imported stay.'}
        </Text>
      )}
      {refused.length > 0 && (
        <Table fz="sm" verticalSpacing={4} aria-label="Refused rows">
          <Table.Tbody>
            {refused.slice(0, ROWS_SHOWN).map(({ row, message }) => (
              <Table.Tr key={row}>
                <Table.Th scope="row" fw={400} w={100}>
                  Row {row.toLocaleString()}
                </Table.Th>
                <Table.Td className={classes.message}>{message}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {refused.length > ROWS_SHOWN && (
        <Text size="xs" c="dimmed">
          The file of refused rows has {formatRowCount(refused.length - ROWS_SHOWN)} more.
        </Text>
      )}
    </section>
  )
}
