import { Table } from '@mantine/core'
import type { ReactNode } from 'react'
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
      <SubjectTable
        label="Access rules"
        subjects={subjects}
        columns={OPERATIONS}
        renderCell={({ caller }, operation) => {
          const reach = reachOf(permissions, permissionScope, operation, caller)
          const isCreation = operation === 'create'
          const text = isCreation && reach.length ? 'yes' : reach.map((each) => REACH_WORDS[each]).join(', ')
          return (
            <Table.Td key={operation} className={toCellClass(reach, isCreation)}>
              {text || '–'}
            </Table.Td>
          )
        }}
      />
      {guarded.length > 0 && (
        <SubjectTable
          label="Field access"
          subjects={subjects}
          columns={guarded.map(({ key }) => key)}
          renderCell={(subject, key) => (
            <Table.Td key={key}>
              {describeFieldAccess(guarded.find((field) => field.key === key)!, subject, {
                permissions,
                permissionScope,
              })}
            </Table.Td>
          )}
        />
      )}
    </section>
  )
}

type SubjectTableProps<Column extends string> = {
  label: string
  subjects: Subject[]
  columns: readonly Column[]
  renderCell: (subject: Subject, column: Column) => ReactNode
}

/** A table with a row for each kind of callers. */
const SubjectTable = <Column extends string>({ label, subjects, columns, renderCell }: SubjectTableProps<Column>) => (
  <Table horizontalSpacing="xs" verticalSpacing={6} fz="sm" mb="lg" aria-label={label}>
    <Table.Thead>
      <Table.Tr>
        <Table.Th scope="col">Who</Table.Th>
        {columns.map((column) => (
          <Table.Th key={column} scope="col">
            <bdi>{column}</bdi>
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
          {columns.map((column) => renderCell(subject, column))}
        </Table.Tr>
      ))}
    </Table.Tbody>
  </Table>
)

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
