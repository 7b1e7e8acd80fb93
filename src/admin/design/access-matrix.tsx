import { Table } from '@mantine/core'
import type { Field, Rule } from '../api/schema'
import { listSubjects, mayUseField, reachOf, type Subject } from './access-evaluation'
import { OPERATIONS, type Scope } from './rule-sentences'
import classes from './rules.module.css'

const REACH_WORDS: Record<Scope, string> = { user: 'own', workspace: 'workspace', tenant: 'all' }

type AccessMatrixProps = { permissions: Rule[]; permissionScope: Scope; fields: Field[] }

/** Who may do what, as the rules come out together: kinds of callers × operations, and × the fields with roles. */
export function AccessMatrix({ permissions, permissionScope, fields }: AccessMatrixProps) {
  const subjects = listSubjects(permissions, fields)
  const guarded = fields.filter(({ readRoles, writeRoles }) => readRoles?.length || writeRoles?.length)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it where it is wider than the screen
    <section className={classes.matrix} aria-labelledby="outcome" tabIndex={0}>
      <Table horizontalSpacing="xs" verticalSpacing={6} fz="sm" aria-label="Who may do what">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Who</Table.Th>
            {OPERATIONS.map((operation) => (
              <Table.Th key={operation} scope="col">
                {operation}
              </Table.Th>
            ))}
            {guarded.map(({ key }) => (
              <Table.Th key={key} scope="col" className={classes.fieldColumn}>
                <bdi>{key}</bdi>
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {subjects.map((subject) => (
            <Table.Tr key={subject.label}>
              <Table.Th scope="row" fw={500}>
                <bdi>{subject.label}</bdi>
              </Table.Th>
              {OPERATIONS.map((operation) => {
                const reach = reachOf(permissions, permissionScope, operation, subject.caller)
                const text =
                  operation === 'create' && reach.length ? 'yes' : reach.map((each) => REACH_WORDS[each]).join(', ')
                return (
                  <Table.Td key={operation} className={toCellClass(reach, operation === 'create')}>
                    {text || '–'}
                  </Table.Td>
                )
              })}
              {guarded.map((field) => (
                <Table.Td key={field.key} className={classes.fieldColumn}>
                  {describeFieldAccess(field, subject, { permissions, permissionScope })}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  )
}

function toCellClass(reach: Scope[], isCreation: boolean) {
  if (!reach.length) return classes.none
  return isCreation || reach.includes('tenant') ? classes.all : classes.some
}

function describeFieldAccess(
  field: Field,
  { caller }: Subject,
  { permissions, permissionScope }: Pick<AccessMatrixProps, 'permissions' | 'permissionScope'>,
) {
  const may = (operation: Rule['operation']) => reachOf(permissions, permissionScope, operation, caller).length > 0
  const reads = may('read') && mayUseField(field, 'readRoles', caller)
  const writes = (may('create') || may('update')) && mayUseField(field, 'writeRoles', caller)
  return [reads && 'reads', writes && 'writes'].filter(Boolean).join(', ') || '–'
}
