import { Input, List, Text } from '@mantine/core'
import { useFormValues } from '../fields/field-form'
import type { InputProps } from '../fields/field-kind'
import classes from './payments.module.css'
import { describePlanPrice } from './price-words'

const toNumber = (value: unknown) => (typeof value === 'number' ? value : null)
const toTexts = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])

/** How the plan of the form around it reads to a customer. */
export function CustomerPreview({ label }: InputProps) {
  const { name, description, monthlyPrice, yearlyPrice, currency, dynamic, features, limits } = useFormValues()
  const price = describePlanPrice({
    ...{ monthlyPrice: toNumber(monthlyPrice), yearlyPrice: toNumber(yearlyPrice) },
    ...{ dynamic: dynamic === true, currency: String(currency ?? '') },
  })
  const lines = toTexts(features)
  const shownLines = lines.length
    ? lines
    : Object.entries((limits ?? {}) as object).map(([key, value]) => `${value} ${key}`)
  return (
    <Input.Wrapper label={label} labelElement="div">
      <div className={classes.preview}>
        <Text fw={600}>{String(name || 'Name of the plan')}</Text>
        <Text>{price}</Text>
        {description ? (
          <Text size="sm" c="dimmed">
            {String(description)}
          </Text>
        ) : null}
        {shownLines.length > 0 && (
          <List size="sm" mt={4}>
            {shownLines.map((line) => (
              <List.Item key={line}>{line}</List.Item>
            ))}
          </List>
        )}
      </div>
    </Input.Wrapper>
  )
}
