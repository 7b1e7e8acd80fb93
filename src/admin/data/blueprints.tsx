import { Anchor, Button, Table } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { blueprintsQuery } from '../api/queries'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'

/** All blueprints, with how many fields each has. */
export function Blueprints() {
  const { data: blueprints, error } = useQuery(blueprintsQuery)
  return (
    <Screen
      title="Data"
      actions={
        <Button component={Link} to="/blueprints/new" leftSection={<IconPlus size={14} />}>
          New blueprint
        </Button>
      }
    >
      {error && <ProblemMessage error={error} />}
      {blueprints?.length === 0 && (
        <EmptyState
          text="There are no blueprints yet."
          action={{ label: 'Create a blueprint', href: '/admin/blueprints/new' }}
        />
      )}
      {!!blueprints?.length && (
        <Table highlightOnHover mx="md" w="auto" miw="60%">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Blueprint</Table.Th>
              <Table.Th>Fields</Table.Th>
              <Table.Th>Description</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {blueprints.map(({ key, name, fields, description }) => (
              <Table.Tr key={key}>
                <Table.Td>
                  <Anchor component={Link} to={`/data/${key}`}>
                    {name}
                  </Anchor>
                </Table.Td>
                <Table.Td ta="right">{fields.length}</Table.Td>
                <Table.Td>{description}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Screen>
  )
}
