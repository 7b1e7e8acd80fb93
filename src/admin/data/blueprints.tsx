import { Anchor, Button, Table } from '@mantine/core'
import { IconFileUpload, IconPlus, IconSitemap } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { blueprintsQuery } from '../api/queries'
import { BLUEPRINT_ROLES, useHasRole } from '../api/roles'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import classes from './blueprints.module.css'
import { EntityCount } from './entity-count'

/** All blueprints, with how many entities and fields each has. */
export function Blueprints() {
  const { data: blueprints, error } = useQuery(blueprintsQuery)
  const mayCreate = useHasRole(BLUEPRINT_ROLES)
  return (
    <Screen
      title="Data"
      request={{ method: 'GET', path: '/api/blueprints' }}
      actions={
        <>
          {!!blueprints?.length && (
            <Button component={Link} to="/blueprints/diagram" variant="default" leftSection={<IconSitemap size={14} />}>
              Diagram
            </Button>
          )}
          {mayCreate && (
            <>
              <Button
                component={Link}
                to="/blueprints/import"
                variant="default"
                leftSection={<IconFileUpload size={14} />}
              >
                From a file
              </Button>
              <Button component={Link} to="/blueprints/new" leftSection={<IconPlus size={14} />}>
                New blueprint
              </Button>
            </>
          )}
        </>
      }
    >
      {error && <ProblemMessage error={error} />}
      {blueprints?.length === 0 && (
        <EmptyState
          text="There are no blueprints yet."
          action={mayCreate ? { label: 'Create a blueprint', to: '/blueprints/new' } : undefined}
        />
      )}
      {!!blueprints?.length && (
        <div className={classes.list}>
          <Table highlightOnHover fz="sm" aria-label="Blueprints">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Blueprint</Table.Th>
                <Table.Th ta="right">Entities</Table.Th>
                <Table.Th ta="right">Fields</Table.Th>
                <Table.Th className={classes.description}>Description</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {blueprints.map(({ key, name, fields, description }) => (
                <Table.Tr key={key}>
                  <Table.Td className={classes.name}>
                    <Anchor component={Link} to={`/data/${key}`} size="sm">
                      <bdi>{name}</bdi>
                    </Anchor>
                  </Table.Td>
                  <Table.Td ta="right">
                    <EntityCount blueprint={key} />
                  </Table.Td>
                  <Table.Td ta="right">
                    <Anchor
                      component={Link}
                      to={`/data/${key}/all/design`}
                      size="sm"
                      aria-label={`Design of ${name}: ${fields.length} fields`}
                    >
                      {fields.length}
                    </Anchor>
                  </Table.Td>
                  <Table.Td className={classes.description} dir="auto">
                    {description}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </Screen>
  )
}
