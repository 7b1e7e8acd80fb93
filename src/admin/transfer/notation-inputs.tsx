import { Group, Select } from '@mantine/core'
import type { DecimalMark } from '../../blueprints/fields/number-cell'
import { TimeZoneSelect } from '../ui/time-zone-select'
import type { Notation } from './entity-import'
import type { RowFile } from './file-rows'

const SEPARATORS: Record<string, string> = { ',': 'Comma', ';': 'Semicolon', '\t': 'Tab', '|': 'Vertical bar |' }
const ENCODINGS: Record<string, string> = { 'utf-8': 'UTF-8', 'windows-1252': 'Windows-1252' }

/** Numbers have a decimal point, and times are local ones, until somebody says otherwise. */
export const USUAL_NOTATION: Notation = { decimal: 'point', timezone: Intl.DateTimeFormat().resolvedOptions().timeZone }

/** Says how a CSV file is read, and which fields its columns fill. */
export function describeDialect({ dialect }: RowFile, fields: readonly string[]): string {
  if (!dialect) return ''
  const separator = (SEPARATORS[dialect.separator] ?? `"${dialect.separator}"`).toLowerCase()
  const encoding = ENCODINGS[dialect.encoding] ?? dialect.encoding
  return `Encoding: ${encoding}. Separator: ${separator}. Columns: ${fields.join(', ') || 'none'}.`
}

type NotationInputsProps = {
  file: RowFile
  notation: Notation
  onSeparator: (separator: string) => void
  onChange: (notation: Notation) => void
}

/** Chooses how a file is read: the separator of its cells, its decimal mark, and the zone of its times. */
export const NotationInputs = ({ file, notation, onSeparator, onChange }: NotationInputsProps) => (
  <Group gap="md" align="start">
    {file.dialect && (
      <>
        <Select
          w={150}
          label="Separator"
          allowDeselect={false}
          data={Object.entries(SEPARATORS).map(([value, label]) => ({ value, label }))}
          value={file.dialect.separator}
          onChange={(separator) => separator && onSeparator(separator)}
        />
        <Select
          w={150}
          label="Decimal mark"
          allowDeselect={false}
          data={[
            { value: 'point', label: 'Point: 1.5' },
            { value: 'comma', label: 'Comma: 1,5' },
          ]}
          value={notation.decimal}
          onChange={(decimal) => decimal && onChange({ ...notation, decimal: decimal as DecimalMark })}
        />
      </>
    )}
    <TimeZoneSelect
      w={220}
      label="Time zone"
      description="Of times that name none."
      inputWrapperOrder={['label', 'input', 'description']}
      allowDeselect={false}
      value={notation.timezone}
      onChange={(timezone) => timezone && onChange({ ...notation, timezone })}
    />
  </Group>
)
