// Scala because: Java's HTTP client trusts certificates by an SSLContext of the JVM only.
package penstock.client

import java.io.FileInputStream
import java.security.KeyStore
import java.security.cert.CertificateFactory
import javax.net.ssl.{SSLContext, TrustManagerFactory}

/** Trust in one PEM file of certificates, as `spark.penstock.tls.ca` names it. */
private[client] object Tls {
  def trusting(pemPath: String): SSLContext = {
    val store = KeyStore.getInstance(KeyStore.getDefaultType)
    store.load(null, null)
    val in = new FileInputStream(pemPath)
    try {
      val certificates = CertificateFactory.getInstance("X.509").generateCertificates(in)
      var index = 0
      certificates.forEach { certificate =>
        store.setCertificateEntry(s"ca-$index", certificate)
        index += 1
      }
    } finally in.close()
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
    trust.init(store)
    val context = SSLContext.getInstance("TLS")
    context.init(null, trust.getTrustManagers, null)
    context
  }
}
