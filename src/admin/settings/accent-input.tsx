import { Button, ColorInput, Text } from '@mantine/core'
import { type AccentCheck, checkAccentColor } from '../branding/accent-color'
import { parseHexColor } from '../branding/contrast'
import type { InputProps } from '../fields/field-kind'
import classes from './accent-input.module.css'

const SWATCHES = ['#0b7272', '#1f5fbf', '#5b4bc4', '#8f3fa8', '#b8326a', '#c0392b', '#a3540a', '#3d7a1f', '#3f4f5f']

/** An input for the accent colour, with what each look makes of it. */
export function AccentInput({ field: _, value, onChange, ...rest }: InputProps) {
  const color = parseHexColor(value)
  const check = color && checkAccentColor(color)
  return (
    <div>
      <ColorInput
        {...rest}
        description="Of buttons, links and the focus. Without one, a deep teal."
        format="hex"
        swatches={SWATCHES}
        swatchesPerRow={9}
        fixOnBlur={false}
        popoverProps={{ withinPortal: true }}
        eyeDropperButtonProps={{ 'aria-label': 'Pick a colour from the screen' }}
        placeholder="#0b7272"
        value={typeof value === 'string' ? value : ''}
        error={rest.error ?? (value && !color ? 'Write the colour as #rrggbb.' : undefined)}
        onChange={(next) => onChange(next || undefined)}
      />
      {check && <AccentPreview check={check} />}
    </div>
  )
}

function AccentPreview({ check: { contrast, light, dark, isAdjusted } }: { check: AccentCheck }) {
  return (
    <>
      <div className={classes.samples} aria-hidden>
        <div className={classes.light}>
          <Button component="span" color={light} autoContrast={false}>
            Light
          </Button>
        </div>
        <div className={classes.dark}>
          <Button component="span" color={dark} autoContrast={false}>
            Dark
          </Button>
        </div>
      </div>
      <Text size="xs" c="dimmed" role="status">
        {isAdjusted
          ? `Its contrast with white is ${contrast.toFixed(1)} : 1, and each look needs a readable one: the page uses ${light} where it is light and ${dark} where it is dark.`
          : `Its contrast with white is ${contrast.toFixed(1)} : 1, which is readable.`}
      </Text>
    </>
  )
}
