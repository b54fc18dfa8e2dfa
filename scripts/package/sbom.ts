import type { VendoredPackage } from './licenses.ts';

/** The bill of materials of the package in CycloneDX: what others have written of it. */
export function sbomDocument(
  own: { readonly name: string; readonly version: string; readonly license: string },
  packages: readonly VendoredPackage[],
): object {
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', ...component(own) } },
    components: packages.map((each) => ({ type: 'library', ...component(each) })),
  };
}

function component({ name, version, license }: Omit<VendoredPackage, 'folder'>): object {
  // An expression such as "(MIT OR Apache-2.0)" is no single license.
  const licenses = /[\s()]/.test(license) ? { expression: license } : { license: { id: license } };
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return { 'bom-ref': purl, name, version, purl, licenses: [licenses] };
}
