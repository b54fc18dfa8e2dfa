import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { faultsInBothThemes, NO_FAULTS } from './console-pages.ts';
import { eventually } from './eventually.ts';

const SOURCES = join(import.meta.dirname, '..', '..', 'src', 'console');

/** What the sources name as titles of dialogs; what varies in them may be anything. */
export function dialogTitles(): readonly RegExp[] {
  const titles = globSync('**/*.tsx', { cwd: SOURCES }).flatMap((file) =>
    readFileSync(join(SOURCES, file), 'utf8')
      .split(/<(?=Dialog|ConfirmByName|ShownOnce|AskingButton)/)
      .slice(1)
      .flatMap((element) => {
        const [, given = ''] = /\b(?:title|question)=("[^"]*"|\{[^\n]*\})\n?/.exec(element) ?? [];
        return given.match(/"[^"]*"|'[^']*'|`[^`]*`/g) ?? [];
      }),
  );
  return [...new Set(titles)].map((title) => {
    const parts = title.slice(1, -1).split(/\$\{[^}]*\}/);
    return new RegExp(`^${parts.map(escaped).join('.*')}$`);
  });
}

function escaped(text: string): string {
  return text.replaceAll(/[^\w\s]/g, String.raw`\$&`);
}

/** The dialogs that were looked at. */
export interface DialogTour {
  /** Titles of those that were seen. */
  readonly titles: Set<string>;
  /** Buttons that were pressed, without what varies in their names. */
  readonly buttons: Set<string>;
}

/** Expects of the dialog that is open that axe-core finds nothing, in both themes. */
export async function expectAccessibleDialog(page: Page, { titles }: DialogTour): Promise<void> {
  const dialog = page.locator('dialog[open]');
  await dialog.waitFor();
  await dialog.getByText('Loading…').waitFor({ state: 'detached' });
  const title = await titleOf(page);
  titles.add(title);
  expect({ title, faults: await faultsInBothThemes(page) }).toEqual({ title, faults: NO_FAULTS });
}

/** Opens each dialog that the page has a button for, and those that a dialog leads to. */
export async function lookAtDialogs(page: Page, tour: DialogTour): Promise<void> {
  for (const press of await openers(page, '#console', tour)) {
    await press();
    await expectAccessibleDialog(page, tour);
    const further = await openers(page, 'dialog[open]', tour);
    for (const pressFurther of further) {
      const before = await titleOf(page);
      await pressFurther();
      await eventually(async () => expect(await titleOf(page)).not.toBe(before));
      await expectAccessibleDialog(page, tour);
      await close(page);
      await press();
    }
    await close(page);
  }
}

async function close(page: Page): Promise<void> {
  await page.keyboard.press('Escape');
  await page.locator('dialog[open]').waitFor({ state: 'detached' });
}

/** The buttons that open a dialog and were not pressed before. */
async function openers(
  page: Page,
  within: string,
  { buttons }: DialogTour,
): Promise<readonly (() => Promise<void>)[]> {
  const opener = `${within} button[aria-haspopup="dialog"]`;
  const names = await page.locator(`${opener}:visible`).evaluateAll((all) =>
    all.map((each) => {
      const part = each.closest('section')?.querySelector('h2')?.textContent;
      return { label: each.ariaLabel ?? '', text: each.textContent, part };
    }),
  );
  return names.flatMap(({ label, text, part = '' }) => {
    const name = (label || text).replaceAll(/\S*[\d./]\S*/g, '*');
    const shape = [within, part, name].join();
    if (buttons.has(shape)) return [];
    buttons.add(shape);
    const own =
      label === ''
        ? page.locator(`${opener}:not([aria-label])`).filter({ hasText: text })
        : page.locator(`${opener}[aria-label=${JSON.stringify(label)}]`);
    return [() => own.first().click()];
  });
}

async function titleOf(page: Page): Promise<string> {
  return page
    .locator('dialog[open]')
    .evaluate(
      (each) => each.getAttribute('aria-label') ?? each.querySelector('h2')?.textContent ?? '',
    );
}
